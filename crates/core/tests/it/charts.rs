//! Charts: what the builder refuses, and how units are found and named.

use soldonce_core::{
    AreaSpec, Chart, ChartBuilder, Invalid, Position, RowNo, SeatSpec, UnitName, UnitNo,
    limits::{AREAS_PER_CHART_MAX, CATEGORIES_PER_CHART_MAX, UNITS_PER_CHART_MAX},
};

use crate::world::rows_and_floor;

fn seat<'a>(id: &'a str, category: &'a str) -> SeatSpec<'a> {
    SeatSpec {
        id,
        label: None,
        category,
        position: None,
    }
}

fn area(id: &str, capacity: u32) -> AreaSpec<'_> {
    AreaSpec {
        id,
        label: None,
        category: "Standing",
        capacity,
        frame: None,
    }
}

/// Builds a chart of words: `z:id` a zone, `r` a row, `a:id*n` an area, anything else a seat.
fn build(plan: &str) -> Result<Chart, Invalid> {
    let mut chart = ChartBuilder::new("hall");
    for word in plan.split(' ').filter(|word| !word.is_empty()) {
        if let Some(zone) = word.strip_prefix("z:") {
            chart.zone(zone, None)?;
        } else if let Some(spec) = word.strip_prefix("a:") {
            let (id, capacity) = spec.split_once('*').unwrap();
            chart.area(&area(id, capacity.parse().unwrap()))?;
        } else if word == "r" {
            chart.row("row")?;
        } else {
            chart.seat(&seat(word, "Seat"))?;
        }
    }
    chart.build()
}

#[test]
fn what_could_be_sold_under_two_names_is_refused() {
    let most = UNITS_PER_CHART_MAX;
    let cases = [
        ("", "chart: the chart has no seat and no area"),
        ("z:main r", "chart: the chart has no seat and no area"),
        (
            "z:main r A-1 A-2 A-1",
            "chart.seat: two seats are named `A-1`",
        ),
        (
            "z:main r A-1 z:side r A-1",
            "chart.seat: two seats are named `A-1`",
        ),
        (
            "z:main r A-1 z:main",
            "chart.zone: two zones are named `main`",
        ),
        (
            "a:floor*1 a:floor*2",
            "chart.area: two areas are named `floor`",
        ),
        ("r A-1", "chart.row: row `row` is in no zone"),
        ("A-1", "chart.seat: seat `A-1` is in no row"),
        ("z:main A-1", "chart.seat: seat `A-1` is in no row"),
        (
            "z:main r A-1 z:side B-1",
            "chart.seat: seat `B-1` is in no row",
        ),
        ("a:floor*0", "chart.area: area `floor` has no places"),
        (
            "z:main r floor.17 a:floor*17",
            "chart.seat: seat `floor.17` has the name of a place of area `floor`",
        ),
    ];
    for (plan, expected) in cases {
        let refusal = build(plan)
            .map(|chart| chart.units())
            .map_err(|e| e.to_string());
        assert_eq!(refusal, Err(expected.to_owned()), "{plan}");
    }
    for plan in [
        "z:main r floor.18 floor.0 floor.017 a:floor*17",
        "z:main r floor a:floor*1",
    ] {
        assert!(build(plan).is_ok(), "{plan}");
    }
    for plan in [
        format!("a:a*{most} a:b*1"),
        format!("a:a*{} a:b*{}", u32::MAX, u32::MAX),
    ] {
        let refusal = build(&plan)
            .map(|chart| chart.units())
            .map_err(|e| e.to_string());
        assert_eq!(
            refusal,
            Err(format!("chart: a chart has at most {most} units")),
            "{plan}"
        );
    }
}

#[test]
fn names_have_bounds() {
    let long = "x".repeat(257);
    let illegal = ["", "a b", "é", "{x}", "x\n", &"x".repeat(65)];
    for id in illegal {
        assert!(
            ChartBuilder::new("hall").zone(id, None).is_err(),
            "zone {id:?}"
        );
        assert!(
            ChartBuilder::new("hall").area(&area(id, 1)).is_err(),
            "area {id:?}"
        );
        let mut chart = ChartBuilder::new("hall");
        chart.zone("main", None).unwrap();
        chart.row("A").unwrap();
        assert!(chart.seat(&seat(id, "Seat")).is_err(), "seat {id:?}");
    }
    let mut chart = ChartBuilder::new("hall");
    assert!(chart.zone("main", Some(&long)).is_err());
    chart.zone("main", None).unwrap_err();
    chart.zone("side", None).unwrap();
    assert!(chart.row(&long).is_err() && chart.row("a\tb").is_err());
    chart.row("").unwrap();
    assert!(chart.seat(&seat("A-1", &long)).is_err() && chart.seat(&seat("A-1", "")).is_err());
    let labelled = SeatSpec {
        label: Some(&long),
        ..seat("A-1", "Seat")
    };
    assert!(chart.seat(&labelled).is_err());
    let mut chart = ChartBuilder::new(&long);
    chart.area(&area("floor", 1)).unwrap();
    assert!(chart.build().is_err(), "the chart's own name");
}

#[test]
fn areas_and_categories_are_counted() {
    let mut chart = ChartBuilder::new("hall");
    for number in 0..AREAS_PER_CHART_MAX {
        chart.area(&area(&format!("a{number}"), 1)).unwrap();
    }
    assert!(chart.area(&area("one-more", 1)).is_err());
    let mut chart = ChartBuilder::new("hall");
    chart.zone("main", None).unwrap();
    chart.row("A").unwrap();
    for number in 0..CATEGORIES_PER_CHART_MAX {
        chart
            .seat(&seat(&format!("A-{number}"), &format!("class {number}")))
            .unwrap();
    }
    assert!(chart.seat(&seat("B-1", "one more")).is_err());
    chart.seat(&seat("B-1", "class 0")).unwrap();
}

#[test]
fn all_seats_have_a_position_or_none() {
    let at = |x| Some(Position { x, y: 0 });
    for positions in [[at(0), None], [None, at(1)]] {
        let mut chart = ChartBuilder::new("hall");
        chart.zone("main", None).unwrap();
        chart.row("A").unwrap();
        for (id, position) in ["A-1", "A-2"].into_iter().zip(positions) {
            chart
                .seat(&SeatSpec {
                    position,
                    ..seat(id, "Seat")
                })
                .unwrap();
        }
        assert!(chart.build().is_err());
    }
}

/// Empty rows, rows of one seat and rows of hundreds, so that every border of the look-up is met.
#[test]
fn every_seat_finds_its_row_and_every_place_its_area() {
    let mut chart = ChartBuilder::new("hall");
    let mut expected = Vec::new();
    chart.zone("main", None).unwrap();
    let sizes = [0, 1, 0, 0, 63, 1, 64, 65, 0, 128, 1, 1, 1, 200, 0, 7, 0];
    for (row, size) in (0..).zip(sizes) {
        chart.row("row").unwrap();
        for number in 0..size {
            chart
                .seat(&seat(&format!("{row}-{number}"), "Seat"))
                .unwrap();
            expected.push(RowNo(row));
        }
    }
    for (id, capacity) in [("z", 3), ("b", 1), ("m", 2)] {
        chart.area(&area(id, capacity)).unwrap();
    }
    let chart = chart.build().unwrap();
    for (unit, row) in (0..).map(UnitNo).zip(&expected) {
        assert_eq!(
            chart.row_of(unit).map(|(found, _)| found),
            Some(*row),
            "{unit:?}"
        );
        assert_eq!(chart.area_no_of(unit), None);
    }
    let seats = chart.seats();
    let areas: Vec<&str> = (seats..chart.units())
        .map(|unit| chart.area_of(UnitNo(unit)).unwrap().id.as_str())
        .collect();
    assert_eq!(areas, ["z", "z", "z", "b", "m", "m"]);
    for unit in [seats, chart.units(), u32::MAX] {
        assert!(chart.row_of(UnitNo(unit)).is_none());
    }
    assert!(chart.area_of(UnitNo(chart.units())).is_none());
    for (number, area) in (0..).map(soldonce_core::AreaNo).zip(chart.areas()) {
        assert_eq!(chart.find_area(area.id.as_str()), Some(number));
    }
    assert_eq!(chart.find_area("y"), None);
}

#[test]
fn every_zone_has_its_rows() {
    let chart = build("z:stalls r A-1 r B-1 z:circle r C-1 r D-1 r E-1").unwrap();
    let zones = chart.zones().iter().map(|zone| {
        let rows = chart.rows_of(zone).iter();
        rows.map(|row| row.first.0).collect::<Vec<_>>()
    });
    assert_eq!(zones.collect::<Vec<_>>(), [vec![0, 1], vec![2, 3, 4]]);
    assert_eq!(chart.name(), "hall");
}

#[test]
fn units_have_one_public_name() {
    let chart = rows_and_floor(&[2], 12);
    for unit in (0..chart.units()).map(UnitNo) {
        let name = chart.unit_name(unit).to_string();
        assert_eq!(chart.find_unit(&name), Some(unit), "{name}");
    }
    assert!(matches!(
        chart.unit_name(UnitNo(13)),
        UnitName::Place { number: 12, .. }
    ));
    for name in [
        "floor.0", "floor.13", "floor.01", "floor.+1", "floor", "A-3", "", "a-1", "floor.",
    ] {
        assert_eq!(chart.find_unit(name), None, "{name}");
    }
    assert_eq!((chart.label(UnitNo(1)), chart.units()), ("2", 14));
}
