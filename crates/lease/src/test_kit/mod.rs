//! Tools to test code that uses leases: a backend that fails on request. Feature `test-kit`.
//!
//! [`FaultyBackend`] wraps any backend. A restart or a failover is another backend put in
//! its place ([`FaultyBackend::replace`]), or an older state put back into the memory backend
//! ([`crate::backend::Memory::restore`]); a jump of the server's clock is an advance of the
//! [`crate::ManualClock`] that the memory backend reads, if that is another than the facade's.
//!
//! ```
//! # use std::sync::Arc;
//! # use soldonce_lease::backend::Memory;
//! # use soldonce_lease::test_kit::{Fault, FaultyBackend, Op};
//! # use soldonce_lease::{AcquireError, Leases, ManualClock};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Arc::new(ManualClock::at(0));
//! let backend = FaultyBackend::around(Arc::new(Memory::new(clock.clone())), clock.clone());
//! let leases = Leases::backend(backend.clone()).clock(clock).connect().await?;
//! backend.next(Op::Acquire, Fault::LoseReply);
//! backend.next(Op::Acquire, Fault::LoseReply);
//! let unknown = leases.lease("a").try_acquire().await;
//! assert!(matches!(unknown, Err(AcquireError::Unknown { .. })));
//! # Ok(())
//! # }
//! ```

mod faulty;

pub use faulty::{Fault, FaultyBackend, Op};
