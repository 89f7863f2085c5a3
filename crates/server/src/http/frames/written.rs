//! Frames as they are sent: JSON in which a changed seat takes its id and three bytes more, and of
//! neighbours in the same state only the first and the last id is written.

use std::sync::Arc;

use serde::Serialize;
use soldonce_core::{Chart, Seq, StateKind, Timestamp, UnitName, UnitNo};
use soldonce_engine::live::{Digest, FeedChange, Frame};
use soldonce_engine::reply::Rfc3339;
use utoipa::ToSchema;

use crate::http::shapes::UnitState;
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
    let id = format!("id: {}.{}\ndata: ", frame.seq.0, frame.digest);
    [id.as_bytes(), &json(frame, cut, chart, None), b"\n\n"].concat()
}

/// Writes a frame as JSON, with the number of the event's terms for readers not sent the event.
pub(in crate::http) fn json(frame: &Frame, cut: Cut, chart: &Chart, terms: Option<u32>) -> Vec<u8> {
    let body = FrameBody {
        from: frame.from.0,
        seq: frame.seq.0,
        digest: frame.digest.to_string(),
        at: Rfc3339(frame.at),
        changes: changes(frame, cut, chart),
        reset: None,
        terms,
    };
    // Writing to memory does not fail.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Consecutive commits as the public sees them, merged. Changes are states, not steps: a reader that knows
/// some of the commits applies them all the same.
#[derive(Serialize, ToSchema)]
#[schema(as = FeedFrame)]
pub(in crate::http) struct FrameBody<'a> {
    /// The first commit in it: the `seq` of the frame before plus one, or less.
    from: u64,
    /// The last commit in it.
    seq: u64,
    /// Tells that commit from one that had its number before a backup was restored. Send it with `after`.
    digest: String,
    /// When the last commit was made.
    #[schema(value_type = String, format = DateTime)]
    at: Rfc3339,
    changes: Vec<ChangeBody<'a>>,
    /// Only of `GET ../frames`, and `true`: the commits are no longer kept, or are others. Read the seats again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reset: Option<bool>,
    /// Only of `GET ../frames`: another number than before says that the event itself changed (its policy, prices or
    /// state), so that it is to be read again. That its sale opens or closes by its time is no change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    terms: Option<u32>,
}

/// Writes what is sent in place of a frame where a reader needs a new snapshot.
pub(in crate::http) fn json_reset((seq, digest): (Seq, Digest), at: Timestamp) -> Vec<u8> {
    let body = FrameBody {
        from: seq.next().0,
        seq: seq.0,
        digest: digest.to_string(),
        at: Rfc3339(at),
        changes: Vec::new(),
        reset: Some(true),
        terms: None,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Seats that are now in a state, or an area with its counts.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = FeedChange)]
struct ChangeBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UnitState>, nullable = false)]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    seats: Option<Vec<Run<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    area: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    free: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blocked: Option<u32>,
}

/// A seat; or the first and the last of seats that follow each other in the chart, over rows and zones.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = SeatRun)]
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
            all.push(ChangeBody {
                state: Some(state.as_str()),
                seats: Some(seats),
                ..ChangeBody::default()
            });
        }
    }
    all.extend(frame.changes.iter().filter_map(|change| {
        let FeedChange::Area(no, tally) = change else {
            return None;
        };
        Some(ChangeBody {
            area: Some(chart.area(*no)?.id.as_str()),
            free: Some(tally.free),
            held: Some(tally.held),
            sold: Some(tally.sold),
            blocked: Some(tally.blocked),
            ..ChangeBody::default()
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
