//! Charts, and the seats as they are.
#![expect(dead_code, reason = "only their shape is read")]
#![expect(
    clippy::struct_field_names,
    reason = "fields are named as the API names them"
)]

use serde::Serialize;
use utoipa::ToSchema;

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
    /// Tells that commit from one that had its number before a backup was restored. Send it with `after`.
    digest: String,
    /// Units in all, area places included.
    total: u32,
    free: u32,
    held: Vec<String>,
    sold: Vec<String>,
    blocked: Vec<String>,
    areas: Vec<AreaCounts<'static>>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct AreaCounts<'a> {
    pub(in crate::http) area: &'a str,
    pub(in crate::http) capacity: u32,
    pub(in crate::http) free: u32,
    pub(in crate::http) held: u32,
    pub(in crate::http) sold: u32,
    pub(in crate::http) blocked: u32,
}
