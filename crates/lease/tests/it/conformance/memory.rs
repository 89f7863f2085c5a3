//! The memory backend in virtual time.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::ManualClock;
use soldonce_lease::backend::{Backend, Fut, Memory};

use super::{Bench, conforms};

/// A backend in virtual time: exact to the nanosecond.
pub(crate) struct Virtual {
    pub(crate) clock: ManualClock,
    pub(crate) backend: Arc<dyn Backend>,
}

impl Virtual {
    #[expect(clippy::unused_async, reason = "the suite starts benches with await")]
    async fn start() -> Self {
        let clock = ManualClock::at(0);
        let backend = Arc::new(Memory::new(Arc::new(clock.clone())));
        Self { clock, backend }
    }
}

impl Bench for Virtual {
    fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        self.clock.advance(span);
        Box::pin(std::future::ready(()))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn slack(&self) -> Duration {
        Duration::ZERO
    }

    fn cases(&self) -> u32 {
        400
    }

    fn wakes(&self) -> bool {
        true
    }
}

conforms!(Virtual::start());
