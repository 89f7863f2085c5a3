//! The body of the lease thread: it connects the backend, runs the doctor, and runs the loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::backend::{Backend, BackendContext, BackendFactory, Finding, Kind, Verdict};
use crate::client::Client;
use crate::inbox::Inbox;
use crate::notice::{Notice, NoticeKind, Notices};
use crate::worker::{Ctx, InPlace, Worker};
use crate::{BackendError, timing};

/// The time-out of connecting, in call time-outs: to connect takes several calls.
const CONNECT_CALLS: u32 = 10;

/// What to do at connect about the findings of the doctor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Doctor {
    /// Log them, and send them as notices.
    #[default]
    Warn,
    /// Refuse to connect if a guarantee of this crate does not hold on the server.
    Strict,
    /// Run no checks.
    Off,
}

pub(super) struct Start {
    pub(super) connect: Box<dyn BackendFactory>,
    pub(super) doctor: Doctor,
    pub(super) ttl_min: Option<Duration>,
    pub(super) context: BackendContext,
    /// The runtime that connects, if acquires and releases may run there.
    pub(super) runtime: Option<Handle>,
}

/// The channel to the caller that connects. A client that it does not take ends the thread.
type Ready = oneshot::Sender<Result<Client, BackendError>>;

/// Runs the thread: connects, answers `ready`, serves commands until the end.
pub(super) fn run(start: Start, mut ready: Ready) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = format!("no runtime: {error}");
            return drop(ready.send(Err(BackendError::Config(why))));
        }
    };
    let inbox = Arc::new(Inbox::default());
    let taken = Arc::clone(&inbox);
    let told = runtime.block_on(async {
        let (context, ttl_min) = (start.context.clone(), start.ttl_min);
        let opened = tokio::select! {
            biased;
            opened = open(start) => opened,
            () = ready.closed() => return None,
        };
        let backends = match opened {
            Ok(backends) => backends,
            Err(error) => {
                drop(ready.send(Err(error)));
                return None;
            }
        };
        let ctx = Arc::new(Ctx::new(backends, inbox, context));
        let client = Client {
            ctx: ctx.clone(),
            ttl_min,
            thread: Mutex::default(),
        };
        ready.send(Ok(client)).ok()?;
        // A task, because tokio looks at its sockets, a system call, before each poll of the future
        // that it blocks on.
        let mut worker = JoinSet::new();
        worker.spawn(Worker::new(ctx).run());
        // A panic has been reported by the hook.
        worker.join_next().await?.ok()?
    });
    // Also after a panic: later callers get `Closed`.
    taken.close();
    // Connections end before the end is reported. A resolver or disk that hangs does not delay it.
    runtime.shutdown_background();
    let (to, drained) = told.unwrap_or_default();
    for to in to {
        to.send(drained).ok();
    }
}

async fn open(start: Start) -> Result<(Arc<dyn Backend>, Option<InPlace>), BackendError> {
    let mut context = start.context;
    let limit = context.call_timeout.saturating_mul(CONNECT_CALLS);
    context.call_timeout = timing::before(context.call_timeout);
    let in_place = match start.runtime {
        Some(runtime) => start
            .connect
            .in_place(&context)?
            .map(|backend| InPlace::new(runtime, backend)),
        None => None,
    };
    let (clock, notices) = (context.clock.clone(), context.notices.clone());
    let backend = tokio::select! {
        biased;
        backend = start.connect.connect(context) => backend?,
        () = clock.sleep_until(clock.boot().plus(limit)) => {
            let why = format!("no connection within {} ms", limit.as_millis());
            return Err(BackendError::NotSent(why));
        }
    };
    if start.doctor != Doctor::Off {
        let kind = backend.facts().kind;
        examine(start.doctor, kind, &notices, backend.doctor().await)?;
    }
    Ok((backend, in_place))
}

fn examine(
    doctor: Doctor,
    kind: Kind,
    notices: &Notices,
    findings: Vec<Finding>,
) -> Result<(), BackendError> {
    for finding in findings {
        let text = format!("{}: {} {}", finding.check, finding.found, finding.fix);
        match finding.verdict {
            Verdict::Ok | Verdict::NotVerifiable => continue,
            Verdict::Fail if doctor == Doctor::Strict => return Err(BackendError::Config(text)),
            Verdict::Warn | Verdict::Fail => {}
        }
        tracing::warn!(backend = kind.as_str(), finding = text, "lease backend");
        notices.tell(|| Notice::of(NoticeKind::DoctorFinding, kind).because(text));
    }
    Ok(())
}
