//! Numbers of two sorts: places in a list, and counters that only rise. Those of an event and of its commits, which
//! everything names.

/// Declares the place of something in a list, from 0.
macro_rules! place {
    ($(#[$about:meta])* $name:ident($number:ty)) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            pub fn index(self) -> usize {
                crate::number::index(u32::from(self.0))
            }
        }
    };
}

/// Declares a counter that rises and never has a value twice.
macro_rules! counter {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the next number.
            ///
            /// # Panics
            /// After 2^64 steps.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("it is counted fewer than 2^64 times"))
            }
        }
    };
}

pub(crate) use {counter, place};

place! {
    /// The place of an event in the ledger, from 0.
    #[derive(Debug)]
    EventNo(u32)
}

counter! {
    /// Number of a commit of one event, dense from 1. Zero is the state before the first.
    Seq
}

pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns how many of something there are, as the rules count.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
