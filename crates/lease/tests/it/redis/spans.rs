//! In which span it lies what the backend reports: what is done for one acquire in its own, what
//! happens to a connection that all of them share in none.

use std::sync::Arc;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Backend, BackendContext, BackendFactory, Fencing, Fut, Kind};
use soldonce_lease::{BackendError, Builder};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::Redis;

use super::site::{Numbers, settings};
use crate::trace_log::TraceLog;

/// Connects, and records the lease thread.
struct LoggedRedis {
    url: String,
    log: TraceLog,
}

impl BackendFactory for LoggedRedis {
    fn kind(&self) -> Kind {
        Kind::Redis
    }

    fn connect(
        self: Box<Self>,
        _: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            self.log.record_thread();
            let mut settings = settings();
            settings.fencing = Fencing::Source(Numbers::from(1));
            let backend = RedisBackend::connect(&self.url.into(), settings).await?;
            Ok(Arc::new(backend) as Arc<dyn Backend>)
        })
    }
}

#[tokio::test]
async fn an_epoch_lies_in_the_span_of_its_acquire_and_a_new_connection_in_none() {
    let (redis, log) = (Redis::start().unwrap(), TraceLog::default());
    let (url, thread_log) = (redis.url(), log.clone());
    let builder = Builder::of(LoggedRedis {
        url,
        log: thread_log,
    });
    let locks = builder.namespace("app").call_timeout(PATIENCE);
    let locks = locks.connect().await.unwrap();
    let held = locks.lease("a").try_acquire().await.unwrap().unwrap();
    let installed = log.events_with("epoch installed");
    assert_eq!(installed.len(), 1);
    assert_eq!(installed[0].within, "lease.acquire backend=\"redis\"");
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    // The first question may meet the broken connection; the second makes another.
    drop(locks.lease("b").try_acquire().await.unwrap().unwrap());
    let replaced = log.events_with("connection replaced");
    assert_eq!(replaced.len(), 1);
    assert_eq!((replaced[0].span, replaced[0].within.as_str()), (0, ""));
    held.release().await.unwrap();
}
