//! Points and spans of time as the rules see them. Time is given, never read.

use std::fmt;

/// Milliseconds since 1970-01-01 UTC on the ledger's clock (model.md 2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01 UTC.
    pub const ZERO: Self = Self(0);
    /// The earliest point of time that the rules know.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest point of time that the rules know.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the point `ms` milliseconds after 1970-01-01 UTC.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Returns milliseconds since 1970-01-01 UTC.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Returns the point `span` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }

    /// Returns the point `span` earlier, at least [`Timestamp::MIN`].
    #[must_use]
    pub fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }

    /// Returns the millisecond after this one.
    #[must_use]
    pub(crate) fn after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the time from `self` to `later`; zero when `later` is not later.
    pub fn until(self, later: Timestamp) -> Span {
        Span(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    pub const fn ms(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
