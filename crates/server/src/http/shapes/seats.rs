//! Charts, the seats as they are, and the feed.
#![expect(dead_code, reason = "only their shape is read")]
#![expect(
    clippy::struct_field_names,
    reason = "fields are named as the API names them"
)]

use serde::Serialize;
use utoipa::ToSchema;

use super::words::UnitState;

/// A seat plan in the native format.
#[derive(ToSchema)]
pub(in crate::http) struct Chart {
    format: String,
    name: String,
    /// The point that `best` seats surround, if the plan names one.
    #[schema(nullable = false)]
    focus: Option<Point>,
    zones: Vec<Zone>,
    areas: Vec<Area>,
}

#[derive(ToSchema)]
pub(in crate::http) struct Point {
    x: f64,
    y: f64,
}

#[derive(ToSchema)]
pub(in crate::http) struct Zone {
    zone: String,
    name: String,
    rows: Vec<Row>,
}

#[derive(ToSchema)]
pub(in crate::http) struct Row {
    row: String,
    seats: Vec<Seat>,
}

#[derive(ToSchema)]
pub(in crate::http) struct Seat {
    /// Its id.
    seat: String,
    /// For people.
    label: String,
    category: String,
    #[schema(nullable = false)]
    x: Option<f64>,
    #[schema(nullable = false)]
    y: Option<f64>,
}

#[derive(ToSchema)]
pub(in crate::http) struct Area {
    /// Its id.
    area: String,
    /// For people.
    label: String,
    capacity: u32,
    category: String,
    #[schema(nullable = false)]
    x: Option<f64>,
    #[schema(nullable = false)]
    y: Option<f64>,
    #[schema(nullable = false)]
    width: Option<f64>,
    #[schema(nullable = false)]
    height: Option<f64>,
}

/// The seats at one commit number. Those in no list are free.
#[derive(ToSchema)]
pub(in crate::http) struct Seats {
    event: String,
    seq: u64,
    /// Units in all, area places included.
    total: u32,
    free: u32,
    held: Vec<String>,
    sold: Vec<String>,
    blocked: Vec<String>,
    areas: Vec<AreaCounts>,
}

#[derive(ToSchema)]
pub(in crate::http) struct AreaCounts {
    area: String,
    capacity: u32,
    free: u32,
    held: u32,
    sold: u32,
    blocked: u32,
}

/// Consecutive commits as the public sees them, merged. Changes are states, not steps: a reader that knows
/// some of the commits applies them all the same.
#[derive(ToSchema)]
pub(in crate::http) struct FeedFrame {
    /// The first commit in it: the `seq` of the frame before plus one, or less.
    from: u64,
    /// The last commit in it.
    seq: u64,
    /// When the last commit was made.
    #[schema(format = DateTime)]
    at: String,
    changes: Vec<FeedChange>,
    /// Only of `GET ../frames`, and `true`: the commits are no longer kept, read the seats again.
    #[schema(nullable = false)]
    reset: Option<bool>,
    /// Only of `GET ../frames`: another number than before says that the event itself changed (its policy, prices or
    /// state), so that it is to be read again. That its sale opens or closes by its time is no change.
    #[schema(nullable = false)]
    terms: Option<u32>,
}

/// Seats that are now in a state, or an area with its counts.
#[derive(ToSchema)]
pub(in crate::http) struct FeedChange {
    #[schema(nullable = false)]
    state: Option<UnitState>,
    #[schema(nullable = false)]
    seats: Option<Vec<SeatRun>>,
    #[schema(nullable = false)]
    area: Option<String>,
    #[schema(nullable = false)]
    free: Option<u32>,
    #[schema(nullable = false)]
    held: Option<u32>,
    #[schema(nullable = false)]
    sold: Option<u32>,
    #[schema(nullable = false)]
    blocked: Option<u32>,
}

/// A seat; or the first and the last of seats that follow each other in the chart, over rows and zones.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(in crate::http) enum SeatRun {
    One(String),
    FirstAndLast([String; 2]),
}
