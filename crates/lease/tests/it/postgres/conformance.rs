//! The suite of all backends, over a private server. Time passes by moving every moment in the rows
//! into the past, which is the same to the rules and makes no test wait.

use std::time::Duration;

use soldonce_lease::backend::postgres::Postgres;
use soldonce_lease::backend::{Backend, Fut};
use soldonce_testkit::postgres::Postgres as Server;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::{backend, config, server, session};
use crate::conformance::{Bench, conforms};

struct Rows {
    backend: Postgres,
    session: Client,
    _task: JoinSet<()>,
    _server: Server,
}

impl Rows {
    async fn start() -> Self {
        let server = server().await;
        let (session, task) = session(&server).await;
        Self {
            backend: backend(config(&server).notify()),
            session,
            _task: task,
            _server: server,
        }
    }
}

impl Bench for Rows {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        let micros = span.as_micros();
        let sql = format!(
            "UPDATE soldonce_lease SET born_at = born_at - t.passed, \
             expires_at = expires_at - t.passed, cap_at = cap_at - t.passed \
             FROM (SELECT {micros} * interval '1 microsecond' AS passed) t"
        );
        Box::pin(async move { self.session.batch_execute(&sql).await.unwrap() })
    }

    fn ttl(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(12)
    }

    fn cases(&self) -> u32 {
        60
    }

    fn wakes(&self) -> bool {
        true
    }
}

conforms!(Rows::start());
