//! Frames as they are sent: JSON in which a changed seat takes its id and three bytes more, and of
//! neighbours in the same state only the first and the last id is written.

use std::sync::Arc;

use serde::Serialize;
use soldonce_core::{Chart, Seq, StateKind, Tally, Timestamp, UnitName, UnitNo};
use soldonce_engine::live::{FeedChange, Frame};
use soldonce_engine::reply::Rfc3339;

use crate::limits::FRAME_BYTES_MAX;

/// How the commits of a feed are put into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum Cut {
    /// One frame for all of them, its seats in runs.
    Merged,
    /// A frame for each commit, each seat by its id: for readers that know no chart.
    Each,
}

/// Returns frames as server-sent events, and how many commits are in them: as many as fit into what may
/// wait for a reader. None where not even the first one fits.
pub(super) fn messages(frames: &[Arc<Frame>], cut: Cut, chart: &Chart) -> Option<(Vec<u8>, usize)> {
    match (cut, Frame::merge(frames)) {
        (_, None) => Some((Vec::new(), 0)),
        (Cut::Merged, Some(merged)) => {
            let text = message(&merged, cut, chart);
            (text.len() <= FRAME_BYTES_MAX).then_some((text, frames.len()))
        }
        (Cut::Each, Some(_)) => {
            let (mut text, mut count) = (Vec::new(), 0);
            for frame in frames {
                let mut next = message(frame, cut, chart);
                if text.len().saturating_add(next.len()) > FRAME_BYTES_MAX {
                    break;
                }
                text.append(&mut next);
                count += 1;
            }
            (count > 0).then_some((text, count))
        }
    }
}

fn message(frame: &Frame, cut: Cut, chart: &Chart) -> Vec<u8> {
    let id = format!("id: {}\ndata: ", frame.seq.0);
    [id.as_bytes(), &json(frame, cut, chart, None), b"\n\n"].concat()
}

/// Writes a frame as JSON, with the number of the event's terms for readers not sent the event.
pub(in crate::http) fn json(frame: &Frame, cut: Cut, chart: &Chart, terms: Option<u32>) -> Vec<u8> {
    let body = FrameBody {
        from: frame.from.0,
        seq: frame.seq.0,
        at: Rfc3339(frame.at),
        changes: changes(frame, cut, chart),
        reset: None,
        terms,
    };
    // Writing to memory does not fail.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct FrameBody<'a> {
    from: u64,
    seq: u64,
    at: Rfc3339,
    changes: Vec<ChangeBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<u32>,
}

/// Writes what is sent in place of a frame where a reader needs a new snapshot.
pub(in crate::http) fn json_reset(seq: Seq, at: Timestamp) -> Vec<u8> {
    let body = FrameBody {
        from: seq.next().0,
        seq: seq.0,
        at: Rfc3339(at),
        changes: Vec::new(),
        reset: Some(true),
        terms: None,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChangeBody<'a> {
    Seats {
        state: &'static str,
        seats: Vec<Run<'a>>,
    },
    Area {
        area: &'a str,
        free: u32,
        held: u32,
        sold: u32,
        blocked: u32,
    },
}

/// Seats that follow each other in the chart.
#[derive(Serialize)]
#[serde(untagged)]
enum Run<'a> {
    One(&'a str),
    FirstAndLast([&'a str; 2]),
}

fn changes<'a>(frame: &Frame, cut: Cut, chart: &'a Chart) -> Vec<ChangeBody<'a>> {
    let mut all = Vec::new();
    for state in StateKind::ALL {
        let in_state = frame.changes.iter().filter_map(|change| match change {
            FeedChange::Seat(unit, kind) if *kind == state => Some(*unit),
            FeedChange::Seat(..) | FeedChange::Area(..) => None,
        });
        let seats = runs(in_state, cut, chart);
        if !seats.is_empty() {
            let state = state.as_str();
            all.push(ChangeBody::Seats { state, seats });
        }
    }
    all.extend(frame.changes.iter().filter_map(|change| {
        let FeedChange::Area(no, tally) = change else {
            return None;
        };
        let Tally {
            free,
            held,
            sold,
            blocked,
        } = *tally;
        Some(ChangeBody::Area {
            area: chart.area(*no)?.id.as_str(),
            free,
            held,
            sold,
            blocked,
        })
    }));
    all
}

/// Groups seats, which are in chart order, into runs of as many as follow each other.
fn runs(units: impl Iterator<Item = UnitNo>, cut: Cut, chart: &Chart) -> Vec<Run<'_>> {
    let mut spans: Vec<(UnitNo, UnitNo)> = Vec::new();
    for unit in units {
        match spans.last_mut() {
            Some((_, last)) if cut == Cut::Merged && last.0.checked_add(1) == Some(unit.0) => {
                *last = unit;
            }
            Some(_) | None => spans.push((unit, unit)),
        }
    }
    let id = |unit| match chart.unit_name(unit) {
        UnitName::Seat(id) => id,
        UnitName::Place { area, .. } => area.id.as_str(),
    };
    let run = |(first, last)| {
        if first == last {
            Run::One(id(first))
        } else {
            Run::FirstAndLast([id(first), id(last)])
        }
    };
    spans.into_iter().map(run).collect()
}
