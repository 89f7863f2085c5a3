//! Problem documents.
#![expect(dead_code, reason = "only their shape is read")]

use utoipa::ToSchema;

use super::holds::Unit;
use super::words::Advice;

/// A refusal (RFC 9457). Which of the last members it has, its code tells.
#[derive(ToSchema)]
pub(in crate::http) struct Problem {
    /// A page about it.
    r#type: String,
    title: String,
    status: u16,
    /// What is wrong with this request.
    detail: String,
    code: String,
    advice: Advice,
    #[schema(nullable = false)]
    conflicts: Option<Vec<Conflict>>,
    #[schema(nullable = false)]
    alternatives: Option<Vec<Alternative>>,
    /// The commit number at which it was true.
    #[schema(nullable = false)]
    seq: Option<u64>,
    /// Names that the chart does not have.
    #[schema(nullable = false)]
    unknown: Option<Vec<String>>,
    /// Lines that are cancelled already.
    #[schema(nullable = false)]
    units: Option<Vec<Unit>>,
    #[schema(nullable = false)]
    orphans: Option<Vec<Unit>>,
    #[schema(nullable = false)]
    budget: Option<String>,
    #[schema(nullable = false)]
    limit: Option<u64>,
    #[schema(nullable = false)]
    used: Option<u32>,
    /// When to ask again, milliseconds.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
    #[schema(nullable = false)]
    booking: Option<String>,
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(nullable = false)]
    fence: Option<u64>,
    #[schema(nullable = false, format = DateTime)]
    max_expires_at: Option<String>,
    #[schema(nullable = false, format = DateTime)]
    sale_opens_at: Option<String>,
    #[schema(nullable = false, format = DateTime)]
    cancel_until: Option<String>,
    #[schema(nullable = false, format = DateTime)]
    droppable_at: Option<String>,
}

/// A wanted seat, area or name of a lease that cannot be had.
#[derive(ToSchema)]
pub(in crate::http) struct Conflict {
    /// Of a lease.
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    area: Option<String>,
    state: ConflictState,
    /// When a held seat may be free.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
    /// How many places of the area are free.
    #[schema(nullable = false)]
    free: Option<u32>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(in crate::http) enum ConflictState {
    Held,
    Sold,
    Blocked,
    Yours,
    Full,
    Free,
}

/// Units that could be had instead.
#[derive(ToSchema)]
pub(in crate::http) struct Alternative {
    units: Vec<Unit>,
    /// Whether they are neighbours.
    together: bool,
}
