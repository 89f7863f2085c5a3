//! Frames as they are written say what they were made of, and how large they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use soldonce_core::{AreaNo, Chart, Seq, StateKind, Tally, Timestamp, UnitNo};
use soldonce_engine::live::{Digest, FeedChange, Frame};

use super::written::{Cut, json as written, messages};
use crate::limits::FRAME_BYTES_MAX;

fn chart(plan: &Value) -> Chart {
    let read = soldonce_engine::chart::read(plan.to_string().as_bytes());
    read.unwrap().chart
}

fn grid(rows: u32, seats: u32) -> Chart {
    chart(&json!({"format": "grid", "rows": rows, "seats_per_row": seats, "category": "S"}))
}

fn frame(seq: u64, changes: Vec<FeedChange>) -> Frame {
    Frame {
        from: Seq(seq),
        seq: Seq(seq),
        digest: Digest::parse("5e884898").unwrap(),
        at: Timestamp::from_ms(1_000),
        changes,
    }
}

/// Reads the states that a frame gives, as a reader with the chart finds them.
fn read(body: &Value, chart: &Chart) -> BTreeMap<u32, String> {
    let no = |id: &Value| chart.find_unit(id.as_str().unwrap()).unwrap().0;
    let mut states = BTreeMap::new();
    for change in body["changes"].as_array().unwrap() {
        for run in change["seats"].as_array().unwrap() {
            let (first, last) = match run.as_array() {
                Some(ends) => (no(&ends[0]), no(&ends[1])),
                None => (no(run), no(run)),
            };
            for unit in first..=last {
                let state = change["state"].as_str().unwrap().to_owned();
                assert_eq!(states.insert(unit, state), None, "a seat is there twice");
            }
        }
    }
    states
}

#[test]
fn every_choice_of_seats_is_read_as_it_was_written() {
    let chart = grid(2, 4);
    let kinds = [None, Some(StateKind::Held), Some(StateKind::Free)];
    for choice in 0..3_usize.pow(8) {
        let kind = |unit: u32| kinds[choice / 3_usize.pow(unit) % 3];
        let states: BTreeMap<u32, StateKind> = (0..8)
            .filter_map(|unit| Some((unit, kind(unit)?)))
            .collect();
        let changes = states.iter();
        let changes = changes.map(|(unit, kind)| FeedChange::Seat(UnitNo(*unit), *kind));
        let frame = frame(7, changes.collect());
        let expected = states.into_iter();
        let expected = expected
            .map(|(unit, kind)| (unit, kind.as_str().to_owned()))
            .collect();
        for cut in [Cut::Merged, Cut::Each] {
            let body = serde_json::from_slice(&written(&frame, cut, &chart, None)).unwrap();
            assert_eq!(read(&body, &chart), expected, "{body}");
        }
    }
}

#[test]
fn a_frame_has_seats_by_state_and_areas() {
    let chart = chart(&json!({"format": "seats", "seats": [
        {"seat": "A-1", "category": "S"}, {"seat": "A-2", "category": "S"},
        {"seat": "A-3", "category": "S"}, {"seat": "B-1", "category": "S"},
    ], "areas": [{"area": "floor", "capacity": 9, "category": "S"}]}));
    let tally = Tally {
        free: 6,
        held: 2,
        sold: 1,
        blocked: 0,
    };
    let all = [0, 1, 3].map(|unit| FeedChange::Seat(UnitNo(unit), StateKind::Sold));
    let all = all.into_iter().chain([
        FeedChange::Seat(UnitNo(2), StateKind::Free),
        FeedChange::Area(AreaNo(0), tally),
    ]);
    let frame = frame(3, all.collect());
    let (text, count) = messages(&[Arc::new(frame)], Cut::Merged, &chart).unwrap();
    let expected = concat!(
        "id: 3.5e884898\ndata: {\"from\":3,\"seq\":3,\"digest\":\"5e884898\",",
        "\"at\":\"1970-01-01T00:00:01.000Z\",\"changes\":[",
        "{\"state\":\"free\",\"seats\":[\"A-3\"]},",
        "{\"state\":\"sold\",\"seats\":[[\"A-1\",\"A-2\"],\"B-1\"]},",
        "{\"area\":\"floor\",\"free\":6,\"held\":2,\"sold\":1,\"blocked\":0}]}\n\n",
    );
    assert_eq!(
        (String::from_utf8(text).unwrap().as_str(), count),
        (expected, 1)
    );
}

/// Changes all units of a hall of 50,000 seats, and every second one, in one tick.
#[test]
fn a_changed_seat_takes_few_bytes() {
    let chart = grid(250, 200);
    let of = |every: usize| {
        let units = (0..50_000).map(UnitNo).step_by(every);
        let changes = units.map(|unit| FeedChange::Seat(unit, StateKind::Blocked));
        let frames = [Arc::new(frame(1, changes.collect()))];
        messages(&frames, Cut::Merged, &chart).map(|(text, _)| text.len())
    };
    assert!(of(1).unwrap() < 200, "all of them are one run");
    let spread = of(2).unwrap();
    assert!(spread < 20 * 25_000, "{spread}");
    assert!(spread <= FRAME_BYTES_MAX);
}

#[test]
fn what_is_larger_than_a_reader_may_keep_waiting_goes_in_parts_or_not_at_all() {
    let chart = grid(250, 200);
    let wide = |seq| {
        let units = (0..50_000).map(UnitNo).step_by(2);
        let changes = units.map(|unit| FeedChange::Seat(unit, StateKind::Held));
        Arc::new(frame(seq, changes.collect()))
    };
    let frames: Vec<_> = (1..=3).map(wide).collect();
    let (text, count) = messages(&frames, Cut::Each, &chart).unwrap();
    assert_eq!(count, 1, "{}", text.len());
    let narrow = |seq: u32| {
        let changed = FeedChange::Seat(UnitNo(2 * seq), StateKind::Held);
        Arc::new(frame(u64::from(seq), vec![changed]))
    };
    let frames: Vec<_> = (1..=4_096).map(narrow).collect();
    let (text, count) = messages(&frames, Cut::Each, &chart).unwrap();
    assert!(count > 1_000 && count < 4_096 && text.len() <= FRAME_BYTES_MAX);
    assert!(text.ends_with(b"\n\n"), "frames are whole");
}
