//! Locks whose values stay usable after a panic of a thread that had them.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
