//! Constructors for leases in this process, and on a backend of the caller's own.

use std::sync::Arc;

use super::builder::GIVEN;
use super::{Builder, Leases};
use crate::BackendError;
use crate::backend::{Backend, BackendContext, BackendFactory, Fencing, Fut, Kind, Memory};

impl Leases {
    /// Starts a builder for leases among the tasks and threads of this process; they end with it.
    pub fn memory() -> Builder {
        Builder::of(InProcess)
    }

    /// Starts a builder for a backend that exists already. It keeps its own clock, namespace and fence source, and
    /// `connect` refuses a builder that names one of the last two.
    pub fn backend(backend: Arc<dyn Backend>) -> Builder {
        Builder::of(Given(backend))
    }
}

/// The memory backend, made when it is connected.
struct InProcess;

impl BackendFactory for InProcess {
    fn kind(&self) -> Kind {
        Kind::Memory
    }

    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let memory = match with.fencing {
                Fencing::Source(source) => {
                    Memory::anchored(with.clock, source, with.namespace.as_str()).await?
                }
                Fencing::Clock | Fencing::Off => Memory::new(with.clock),
            };
            Ok(Arc::new(memory) as Arc<dyn Backend>)
        })
    }
}

struct Given(Arc<dyn Backend>);

impl BackendFactory for Given {
    fn kind(&self) -> Kind {
        GIVEN
    }

    fn connect(
        self: Box<Self>,
        _: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move { Ok(self.0) })
    }
}
