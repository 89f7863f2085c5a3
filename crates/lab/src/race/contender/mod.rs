//! What races: a strategy with all it needs, and one hall that it sells.

mod pool;
mod product;

use std::pin::Pin;
use std::sync::Arc;

use soldonce_core::{History, OnHold};

use super::plan::{Hall, Want};

pub(super) use self::pool::Pool;
pub(super) use self::product::{Product, new_event};

/// What a call on a contender returns.
pub(super) type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How one buyer was answered.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The seats are his. The product gives a hold, which is confirmed afterwards; the lab's own
    /// strategies sell at once.
    Won(Option<OnHold>),
    /// Somebody else has a seat, or gets it: an ordinary answer.
    Refused(&'static str),
    /// Anything else.
    Failed(String),
}

/// A strategy that is ready to sell halls.
pub(super) trait Contender: Send + Sync {
    /// Makes a hall with all seats free.
    ///
    /// # Errors
    /// When the database refuses.
    fn open_hall<'a>(&'a self, hall: &'a Hall) -> Doing<'a, anyhow::Result<Arc<dyn Sale>>>;

    /// What it sends for one buyer of three seats, in sequence.
    fn statements(&self) -> &'static [&'static str];

    /// Ends its tasks and connections.
    fn close(&self) -> Doing<'_, ()>;
}

/// One hall on sale.
pub(super) trait Sale: Send + Sync {
    /// One buyer wants seats. This is what is timed.
    fn ask<'a>(&'a self, want: &'a Want) -> Doing<'a, Outcome>;

    /// Sells what was won. Not timed.
    ///
    /// # Errors
    /// In words that are counted: a winner who cannot confirm.
    fn confirm(&self, won: OnHold) -> Doing<'_, Result<(), String>>;

    /// All that happened in the hall, for the auditor.
    ///
    /// # Errors
    /// When it cannot be read.
    fn history(&self) -> Doing<'_, anyhow::Result<History>>;
}
