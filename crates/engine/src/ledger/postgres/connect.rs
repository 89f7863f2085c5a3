//! How a connection is made, and when it is ended: with the first warning after a commit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use deadpool_postgres::Connect;
use soldonce_tls::postgres::{self as tls, PgStream, PgTls};
use tokio::task::JoinHandle;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};

use super::failure::chain;

/// Connects, by TLS as the address says.
///
/// A commit whose wait for a synchronous standby was cancelled is answered as a success, after a warning of
/// class 01: it is on the disk of the primary and perhaps nowhere else. The connection ends before that
/// answer is read, so that the outcome is unknown, as with any connection that breaks, and is settled.
pub(super) struct Connector(pub(super) PgTls);

type Connected = Result<(Client, JoinHandle<()>), Error>;

impl Connect for Connector {
    #[expect(
        clippy::disallowed_methods,
        reason = "the pool ends the task with its connection"
    )]
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        let (config, tls) = (config.clone(), self.0.clone());
        Box::pin(async move {
            let (client, connection) = tls::connect(&config, &tls).await?;
            Ok((client, tokio::spawn(read(connection))))
        })
    }
}

/// Reads a connection until its end.
async fn read(mut connection: Connection<Socket, PgStream<Socket>>) {
    // What is said before the first statement is about no commit.
    let mut is_new = true;
    let ended = poll_fn(|cx| poll(&mut connection, cx, &mut is_new));
    if let Err(why) = ended.await {
        tracing::warn!(why, "a connection to the database ended");
    }
}

fn poll(
    connection: &mut Connection<Socket, PgStream<Socket>>,
    cx: &mut Context<'_>,
    is_new: &mut bool,
) -> Poll<Result<(), String>> {
    loop {
        match connection.poll_message(cx) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice))))
                if !*is_new && is_doubt(&notice) =>
            {
                return Poll::Ready(Err(notice.to_string()));
            }
            Poll::Ready(Some(Ok(_))) => {}
            // In one line, as the log is read.
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Err(chain(&error).replace('\n', "; ")));
            }
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Pending => {
                *is_new = false;
                return Poll::Pending;
            }
        }
    }
}

fn is_doubt(notice: &DbError) -> bool {
    notice.parsed_severity() == Some(Severity::Warning) && notice.code().code().starts_with("01")
}
