use serde_json::{Value, json};
use soldonce_core::{Position, UnitNo};

use super::*;

fn seat(guid: &str, x: f64, y: f64) -> Value {
    let number = guid.rsplit('-').next();
    let position = json!({"x": x, "y": y});
    json!({"seat_guid": guid, "seat_number": number, "position": position, "category": "Standard",
           "uuid": "ignored", "radius": 10})
}

fn plan(seats: &[Value]) -> Value {
    json!({
        "name": "Chapel", "size": {"width": 600, "height": 400}, "anything": [1, {"new": true}],
        "categories": [{"name": "Standard", "color": "#7f4a91"}],
        "zones": [{
            "name": "Nave", "zone_id": "nave", "position": {"x": 100, "y": 50},
            "rows": [{"row_number": "A", "row_label": "Row %s", "position": {"x": 20, "y": 10},
                      "row_number_position": "both", "seats": seats}],
            "areas": [{"shape": "rectangle", "color": "#ccc", "rectangle": {"width": 9, "height": 9},
                       "position": {"x": 0, "y": 0}, "rotation": 0.5}],
        }],
    })
}

fn read_value(plan: &Value) -> Result<ReadChart, Invalid> {
    super::super::read(
        json!({"format": "pretix", "plan": plan})
            .to_string()
            .as_bytes(),
    )
}

#[track_caller]
fn refused(plan: &Value, start: &str, contains: &str) {
    let error = read_value(plan).unwrap_err().reason;
    assert!(
        error.starts_with(start) && error.contains(contains),
        "{error}"
    );
}

#[test]
fn adds_offsets_and_scales_to_seats_one_apart() {
    let seats = [
        seat("A-1", 0.0, 0.0),
        seat("A-2", 30.0, 0.0),
        seat("A-3", 60.0, 0.0),
    ];
    let far = seat("A-4", 150.5, -10.0);
    let read = read_value(&plan(&[&seats[..], &[far]].concat())).unwrap();
    let at = |id| read.chart.position(read.chart.find_seat(id).unwrap());
    assert_eq!(at("A-1"), Some(Position { x: 400, y: 200 }));
    assert_eq!(at("A-2"), Some(Position { x: 500, y: 200 }));
    assert_eq!(at("A-4"), Some(Position { x: 902, y: 167 }));
    assert_eq!(
        (read.chart.name(), read.chart.zones()[0].label.as_str()),
        ("Chapel", "Nave")
    );
    assert_eq!(read.chart.rows()[0].label, "A");
    assert_eq!(
        read.notes,
        ["1 areas are decoration without a capacity and were left out"]
    );
}

#[test]
fn a_bare_plan_reads_alike_but_for_the_root_of_places() {
    let good = plan(&[seat("A-1", 0.0, 0.0)]);
    assert_eq!(
        super::super::read_pretix_plan(good.to_string().as_bytes())
            .unwrap()
            .chart
            .units(),
        1
    );
    let bad = plan(&[json!({"seat_guid": "A-1"})]).to_string();
    let error = super::super::read_pretix_plan(bad.as_bytes())
        .unwrap_err()
        .reason;
    assert!(
        error.starts_with("at plan.zones[0].rows[0].seats[0] (line 1"),
        "{error}"
    );
    refused(
        &plan(&[json!(7)]),
        "at chart.plan.zones[0].rows[0].seats[0] (",
        "expected an object",
    );
}

#[test]
fn illegal_guids_become_legal_ids_and_stay_as_labels() {
    let mut long = seat(&"y".repeat(300), 90.0, 0.0);
    long["seat_number"] = json!("4");
    let read = read_value(&plan(&[
        seat("Parkett Reihe 1 Platz 2", 0.0, 0.0),
        seat("座席", 30.0, 0.0),
        seat("", 60.0, 0.0),
        long,
    ]));
    let read = read.unwrap();
    let names: Vec<String> = (0..4)
        .map(|unit| read.chart.unit_name(UnitNo(unit)).to_string())
        .collect();
    let long = "y".repeat(64);
    assert_eq!(
        names,
        ["Parkett-Reihe-1-Platz-2", "nave-A-2", "nave-A-3", &long]
    );
    assert_eq!(read.chart.label(UnitNo(0)), "Parkett Reihe 1 Platz 2");
    assert_eq!(read.chart.label(UnitNo(1)), "座席");
    assert_eq!(read.chart.label(UnitNo(3)), "4");
    assert_eq!(
        read.notes[0],
        "seat_guid `Parkett Reihe 1 Platz 2` became `Parkett-Reihe-1-Platz-2`"
    );
    assert_eq!(read.notes.len(), 5);
}

#[test]
fn colliding_seats_are_refused_with_both_places() {
    let twice = plan(&[
        seat("x y", 0.0, 0.0),
        seat("z", 30.0, 0.0),
        seat("x-y", 60.0, 0.0),
    ]);
    let places = "at chart.plan.zones[0].rows[0].seats[0].seat_guid (\"x y\") and at \
                  chart.plan.zones[0].rows[0].seats[2].seat_guid: ";
    refused(&twice, places, "two seats are named `x-y`");
}

#[test]
fn zones_of_one_name_stay_two_zones() {
    let mut two = plan(&[seat("A-1", 0.0, 0.0)]);
    let mut second = two["zones"][0].clone();
    second["rows"][0]["seats"] = json!([seat("B-1", 0.0, 0.0)]);
    second["areas"] = Value::Null;
    two["zones"].as_array_mut().unwrap().push(second);
    let read = read_value(&two).unwrap();
    let ids: Vec<&str> = read
        .chart
        .zones()
        .iter()
        .map(|zone| zone.id.as_str())
        .collect();
    assert_eq!(ids, ["nave", "nave-2"]);
    assert_eq!(read.notes[0], "zone `nave` became `nave-2`");
}

#[test]
fn refusals_name_the_property() {
    let place = "at chart.plan.zones[0].rows[0].seats[0]";
    let mut category = seat("A-1", 0.0, 0.0);
    category["category"] = json!("");
    refused(&plan(&[category]), &format!("{place}.category: "), "``");
    let mut number = seat("A-1", 0.0, 0.0);
    number["seat_number"] = json!("1\n");
    refused(
        &plan(&[number]),
        &format!("{place}.seat_number: "),
        "control characters",
    );
    refused(
        &plan(&[seat("A-1", 1e12, 0.0)]),
        &format!("{place}.position.x ("),
        "a number from",
    );
    refused(&plan(&[]), "", "no seat and no area");
    let json = br#"{"format":"pretix","plan":{"zones":[]},"plans":1}"#;
    let error = super::super::read(json).unwrap_err().reason;
    assert!(error.starts_with("at chart.plans (line 1"), "{error}");
}

#[test]
fn categories_that_do_not_match_are_noted() {
    let mut unlisted = plan(&[seat("A-1", 0.0, 0.0)]);
    unlisted["categories"] = json!([{"name": "Premium"}]);
    let notes = read_value(&unlisted).unwrap().notes.join("\n");
    assert!(
        notes.contains("`Standard` is used by seats and not listed"),
        "{notes}"
    );
    assert!(
        notes.contains("`Premium` is listed in `categories` and used by no seat"),
        "{notes}"
    );
}

#[test]
fn many_changed_guids_are_counted() {
    let seats: Vec<Value> = (0..30_i32)
        .map(|n| seat(&format!("s {n}"), n.into(), 0.0))
        .collect();
    let notes = read_value(&plan(&seats)).unwrap().notes;
    assert_eq!(notes.len(), SEAT_NOTES_MAX + 2);
    assert!(notes.contains(&"10 more seat_guids became legal ids".to_owned()));
}
