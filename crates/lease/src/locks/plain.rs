//! Locks in this process, and on a backend that somebody else made.

use std::sync::Arc;

use super::{Builder, Locks};
use crate::BackendError;
use crate::backend::{Backend, Connect, Fencing, Fut, Kind, Memory, Wiring};

impl Locks {
    /// Leases in this process.
    pub fn memory() -> Builder {
        Builder::of(InProcess)
    }

    /// Leases on a backend that exists already, on this clock or its own.
    pub fn backend(backend: Arc<dyn Backend>) -> Builder {
        Builder::of(Given(backend))
    }
}

/// The memory backend, made when it is connected.
struct InProcess;

impl Connect for InProcess {
    fn kind(&self) -> Kind {
        Kind::Memory
    }

    fn connect(
        self: Box<Self>,
        with: Wiring,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let memory = match with.fencing {
                Fencing::Epochs(source) => {
                    Memory::anchored(with.clock, source, with.namespace.as_str()).await?
                }
                Fencing::Tokens(source) => {
                    Memory::with_tokens(with.clock, source, with.namespace.as_str())
                }
                Fencing::Unanchored | Fencing::Off => Memory::new(with.clock),
            };
            Ok(Arc::new(memory) as Arc<dyn Backend>)
        })
    }
}

/// A backend that exists already.
struct Given(Arc<dyn Backend>);

impl Connect for Given {
    fn kind(&self) -> Kind {
        // It has its namespace already, so none is asked for.
        Kind::Other("given")
    }

    fn connect(self: Box<Self>, _: Wiring) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move { Ok(self.0) })
    }
}
