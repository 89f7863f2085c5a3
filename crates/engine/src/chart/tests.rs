//! Rules of every format: a written chart reads back, places are named, nothing panics.

use proptest::prelude::*;
use serde_json::{Value, json};
use soldonce_core::{AreaSpec, ChartBuilder, Frame, Position, SeatSpec, UnitNo};

use super::*;

/// Builds one valid plan of each format, with every property that it knows.
fn valid_plans() -> [Value; 4] {
    let at = |x: f64, y: f64| json!({"x": x, "y": y});
    let native = json!({
        "format": "soldonce", "name": "Hall", "focus": {"x": 0.5, "y": -2},
        "zones": [{"zone": "main", "name": "Stalls", "rows": [
            {"row": "A", "label": "Row A", "seats": [
                {"seat": "A-1", "label": "1", "category": "Standard", "x": 0.0, "y": -0.25},
                {"seat": "A-2", "category": "Premium", "x": 1, "y": 1e1}]},
            {"row": "B", "seats": []}]}],
        "areas": [
            {"area": "floor", "label": "Floor", "capacity": 5, "category": "Standing",
             "x": 0, "y": 3.5, "width": 4, "height": 2.75},
            {"area": "bar", "capacity": 1, "category": "Standing"}],
    });
    let pretix = json!({
        "name": "Hall", "categories": [{"name": "Standard"}], "size": {"width": 5, "height": 5},
        "zones": [{"name": "Nave", "zone_id": null, "position": at(1.0, 2.5), "rows": [
            {"row_number": "A", "position": at(0.0, 0.0), "seats": [
                {"seat_guid": "A 1", "seat_number": "1", "position": at(0.0, 0.0),
                 "category": "Standard"},
                {"seat_guid": "A-2", "seat_number": "2", "position": at(25.0, -3.0),
                 "category": "Standard", "radius": 10}]}],
            "areas": [{"text": {"text": "Stage"}}]}],
    });
    [
        json!({"format": "grid", "rows": 3, "seats_per_row": 4, "category": "Standard"}),
        json!({"format": "seats", "seats": [{"seat": "A-1", "category": "S"}],
               "areas": [{"area": "floor", "capacity": 2, "category": "S"}]}),
        native,
        json!({"format": "pretix", "plan": pretix}),
    ]
}

#[track_caller]
fn assert_same(one: &Chart, other: &Chart) {
    assert_eq!(one.name(), other.name());
    assert_eq!(one.named_focus(), other.named_focus());
    assert_eq!(one.zones(), other.zones());
    assert_eq!(one.rows(), other.rows());
    assert_eq!(one.areas(), other.areas());
    assert_eq!(one.categories(), other.categories());
    assert_eq!(one.units(), other.units());
    for unit in (0..one.units()).map(UnitNo) {
        assert_eq!(one.unit_name(unit), other.unit_name(unit));
        assert_eq!(one.category_of(unit), other.category_of(unit));
        assert_eq!(one.position(unit), other.position(unit));
        assert_eq!(one.label(unit), other.label(unit));
    }
}

#[track_caller]
fn assert_survives_writing(chart: &Chart) {
    let json = serde_json::to_vec(&write(chart)).unwrap();
    let back = read(&json).unwrap();
    assert_eq!(back.notes, Vec::<String>::new());
    assert_same(chart, &back.chart);
}

/// Reads without panicking; what is a chart survives writing.
fn check_any(json: &[u8]) {
    for result in [read(json), read_pretix_plan(json)] {
        match result {
            Ok(read) if read.chart.units() < 10_000 => {
                assert_survives_writing(&read.chart);
                assert_eq!(summary(&read).units, read.chart.units());
            }
            Ok(_) => {}
            Err(error) => assert!(!error.reason.is_empty() && error.reason.len() < 3_000),
        }
    }
}

#[test]
fn every_valid_plan_survives_writing() {
    for plan in valid_plans() {
        let read = read(plan.to_string().as_bytes());
        assert_survives_writing(&read.unwrap().chart);
    }
    assert_survives_writing(&read(&sample("playhouse.json")).unwrap().chart);
}

#[test]
fn writes_the_native_format_with_labels() {
    let [.., native, _] = valid_plans();
    let chart = read(native.to_string().as_bytes()).unwrap().chart;
    let expected = json!({
        "format": "soldonce", "name": "Hall", "focus": {"x": 0.5, "y": -2},
        "zones": [{"zone": "main", "name": "Stalls", "rows": [
            {"row": "Row A", "seats": [
                {"seat": "A-1", "label": "1", "category": "Standard", "x": 0, "y": -0.25},
                {"seat": "A-2", "label": "2", "category": "Premium", "x": 1, "y": 10}]},
            {"row": "B", "seats": []}]}],
        "areas": [
            {"area": "floor", "label": "Floor", "capacity": 5, "category": "Standing",
             "x": 0, "y": 3.5, "width": 4, "height": 2.75},
            {"area": "bar", "label": "bar", "capacity": 1, "category": "Standing"}],
    });
    assert_eq!(serde_json::to_value(write(&chart)).unwrap(), expected);
}

#[test]
fn a_chart_without_positions_is_written_without() {
    let [_, seats, ..] = valid_plans();
    let chart = read(seats.to_string().as_bytes()).unwrap().chart;
    let text = serde_json::to_string(&write(&chart)).unwrap();
    assert!(!text.contains("\"x\""), "{text}");
}

/// Lists the lines of a table, whose columns are parted by ` | `.
pub(super) fn cases<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    table.trim_matches('\n').lines().map(|line| {
        let columns: Vec<&str> = line.split(" | ").collect();
        <[&str; N]>::try_from(columns).unwrap()
    })
}

#[track_caller]
fn refused(plan: &str, message: &str) {
    let error = read(plan.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(message), "{error}\n{plan}");
}

#[test]
fn a_format_is_needed_and_known() {
    let table = r#"
{"rows":1} | chart.format: it is missing: `grid`, `seats`
{"format":null} | chart.format: it is missing
{"format":"gird"} | at chart.format (line 1, column 16): unknown variant `gird`
["grid",1,1,"S"] | at chart (line 1, column 0): invalid type: sequence
"#;
    for [plan, message] in cases::<2>(table) {
        refused(plan, message);
    }
    assert!(read(b"").is_err() && read(b"\xff").is_err());
}

/// Puts one value at a time into a good plan.
#[test]
fn native_refusals_name_the_place() {
    let [.., native, _] = valid_plans();
    let table = r#"
/name | "a\nb" | chart.name: `a\nb`
/zones/0/zone | "a b" | at chart.zones[0]: `a b`
/zones/0/rows/1/row | "\t" | at chart.zones[0].rows[1]:
/zones/0/rows/0/seats/1 | {"seat":"A 2","category":"C"} | at chart.zones[0].rows[0].seats[1].seat:
/zones/0/rows/0/seats/1 | {"seat":"A-1","category":"C","x":1,"y":1} | two seats are named `A-1`
/zones/0/rows/0/seats/1 | {"seat":"A-2","category":"C","x":1} | stand together
/zones/0/rows/0/seats/1 | {"seat":"A-2","category":"C"} | seats[1]: it has no position, chart.zones[0]
/zones/0/rows/0/seats/1 | {"seat":"floor.3","category":"C","x":1,"y":1} | at chart.zones[0].rows[0]
/zones/0/rows/0/seats/1 | {"seat":"a","category":"C","label":"\n"} | rows[0].seats[1].label:
/zones/0/rows/0/seats/1 | {"seat":"a","category":"C","z":1} | rows[0].seats[1].z (line 1
/zones | [{"zone":"a","rows":[]},{"zone":"a","rows":[]}] | at chart.zones[1]:
/areas/0/width | 0 | at chart.areas[0]: `width` and `height` are more than 0
/areas/1/capacity | -3 | at chart.areas[1].capacity (line 1
"#;
    for [place, value, message] in cases::<3>(table) {
        let mut plan = native.clone();
        *plan.pointer_mut(place).unwrap() = serde_json::from_str(value).unwrap();
        refused(&plan.to_string(), message);
    }
}

#[test]
fn zones_have_a_bound() {
    let zones: Vec<Value> = (0..1_001)
        .map(|n| json!({"zone": n.to_string(), "rows": []}))
        .collect();
    let plan = json!({"format": "soldonce", "zones": zones});
    refused(&plan.to_string(), "it has 1001 zones");
}

fn sample(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

#[test]
fn the_sample_plans_are_good() {
    let playhouse = summary(&read(&sample("playhouse.json")).unwrap());
    let sizes = (playhouse.seats, playhouse.units, playhouse.rows);
    assert_eq!(sizes, (422, 482, 54));
    let market = summary(&read(&sample("market.json")).unwrap());
    assert_eq!((market.seats, market.units), (18, 258));
    let chapel = summary(&read_pretix_plan(&sample("chapel.pretix.json")).unwrap());
    assert_eq!((chapel.zones, chapel.rows, chapel.seats), (2, 5, 26));
    assert_eq!(chapel.notes.len(), 2, "{:?}", chapel.notes);
}

#[test]
fn no_two_seats_of_the_demo_touch() {
    let chart = read(&sample("playhouse.json")).unwrap().chart;
    let seats = (0..chart.seats()).filter_map(|unit| chart.position(UnitNo(unit)));
    let seats: Vec<_> = seats.collect();
    assert_eq!(seats.len(), 422);
    for (index, one) in seats.iter().enumerate() {
        for other in &seats[index + 1..] {
            let (x, y) = (one.x - other.x, one.y - other.y);
            assert!(x * x + y * y >= 100 * 100, "{one:?} {other:?}");
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "format", "grid", "seats", "soldonce", "pretix", "plan", "zones", "rows", "areas", "seat",
        "category", "x", "y", "A-1", "", "a b", "\u{0}", "座",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let key = word.clone().prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Lists all places of a document, as JSON pointers.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter()
                .for_each(|(key, inner)| pointers(inner, &format!("{at}/{key}"), found));
        }
        Value::Array(list) => {
            list.iter()
                .zip(0..)
                .for_each(|(inner, n)| pointers(inner, &format!("{at}/{n}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

type AnySeat = (Option<String>, u8, Option<Position>);

/// Adds seats numbered backwards from `last`.
fn add_seats(builder: &mut ChartBuilder, last: usize, seats: &[AnySeat]) {
    for ((label, category, position), before) in seats.iter().zip(0..) {
        let number = last - before;
        let id = format!("s{}-{number}", number % 3);
        let (label, category) = (label.as_deref(), format!("c{category}"));
        let seat = SeatSpec {
            id: &id,
            label,
            category: &category,
            position: *position,
        };
        builder.seat(&seat).unwrap();
    }
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let place = any::<(i32, i32)>().prop_map(|(x, y)| Some(Position { x, y }));
    prop_oneof![
        any_chart_with(place.boxed()),
        any_chart_with(Just(None).boxed())
    ]
}

fn any_chart_with(position: BoxedStrategy<Option<Position>>) -> impl Strategy<Value = Chart> {
    let label = prop::option::of("[^\\p{C}]{0,20}");
    let seat = (label.clone(), 0_u8..4, position);
    let row = ("[^\\p{C}]{0,9}", prop::collection::vec(seat, 0..6));
    let zone = (label.clone(), prop::collection::vec(row, 0..5));
    let frame = prop::option::of((any::<i32>(), any::<i32>(), 1..i32::MAX, 1..i32::MAX));
    let area = (label, 1_u32..50, 0_u8..6, frame);
    let (zones, areas) = (
        prop::collection::vec(zone, 0..4),
        prop::collection::vec(area, 0..4),
    );
    let parts = ("[^\\p{C}]{0,20}", zones, areas);
    parts.prop_filter_map("a chart has a unit", |(name, zones, areas)| {
        let mut builder = ChartBuilder::new(&name);
        let mut number = 0;
        for ((label, rows), zone) in zones.iter().zip(0..) {
            builder
                .zone(&format!("zone-{zone}"), label.as_deref())
                .unwrap();
            for (row, seats) in rows {
                builder.row(row).unwrap();
                number += seats.len();
                add_seats(&mut builder, number, seats);
            }
        }
        for ((label, capacity, category, frame), number) in areas.iter().zip(0..) {
            let (id, category) = (format!("area-{number}"), format!("c{category}"));
            let (label, capacity) = (label.as_deref(), *capacity);
            let frame = frame.map(|(x, y, width, height)| Frame {
                at: Position { x, y },
                width,
                height,
            });
            let area = AreaSpec {
                id: &id,
                label,
                category: &category,
                capacity,
                frame,
            };
            builder.area(&area).unwrap();
        }
        builder.build().ok()
    })
}

proptest! {
    #[test]
    fn every_chart_survives_writing(chart in any_chart()) {
        assert_survives_writing(&chart);
    }

    #[test]
    fn no_json_panics(json in any_json()) {
        check_any(json.to_string().as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_any(&bytes);
    }

    #[test]
    fn no_changed_value_panics(
        plan in 0_usize..4,
        place in any::<prop::sample::Index>(),
        bare: bool,
        value in any_json(),
    ) {
        let mut plan = valid_plans()[plan].clone();
        if bare && let Some(inner) = plan.get("plan") {
            plan = inner.clone();
        }
        let mut places: Vec<String> = Vec::new();
        pointers(&plan, "", &mut places);
        let place: &String = place.get(&places);
        *plan.pointer_mut(place).unwrap() = value;
        check_any(plan.to_string().as_bytes());
    }

    #[test]
    fn no_changed_byte_panics(
        plan in 0_usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut json = valid_plans()[plan].to_string().into_bytes();
        for (at, byte) in edits {
            let at = at.index(json.len());
            json[at] = byte;
        }
        let end = end.map_or(json.len(), |end| end.index(json.len()));
        check_any(&json[..end]);
    }
}
