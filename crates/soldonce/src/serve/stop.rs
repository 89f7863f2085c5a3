//! Waits until a server is to end, and ends it in order.

use std::sync::Arc;

use soldonce_server::limits::COMMANDS_END_MS;
use tokio::task::JoinError;

use super::fault::until_a_restart_helps;
use super::start::RunningServer;
use crate::exit::Exit;

/// Longest time from the signal to the end, milliseconds: supervisors kill after ten seconds and more, and the last
/// spans may have to be sent.
const END_MS_MAX: u64 = 9_000;
const _: () = assert!(COMMANDS_END_MS < END_MS_MAX);

/// Waits for SIGINT, SIGTERM, a fault of the ledger that a restart repairs, or a task that ends by itself; then ends
/// everything in order: no new requests, those in flight answered, the ledger closed.
pub(crate) async fn until_stopped(mut started: RunningServer) -> anyhow::Result<Exit> {
    let folder = started.folder.take();
    let exit = tokio::select! {
        () = started.signals.stop() => Exit::Done,
        // None of them ends before the shutdown, except by a panic: there is nothing to serve without it.
        Some(ended) = started.tasks.join_next() => {
            log_panic(ended);
            tracing::error!(
                "restart me: a part of the server has ended by itself, and the others end with it (exit code 4)"
            );
            Exit::Restart
        }
        () = until_a_restart_helps(&started.engine, folder) => {
            tracing::error!(
                "restart me: the ledger failed to store, and the disk takes files again; memory is rebuilt from \
                 the file (exit code 4)"
            );
            Exit::Restart
        }
    };
    tracing::info!("ending: no new requests, those in flight are answered");
    started.shutdown.cancel();
    let clock = Arc::clone(&started.engine.world().clock);
    let late = clock.boot().plus_ms(END_MS_MAX);
    let ended = async {
        while let Some(ended) = started.tasks.join_next().await {
            log_panic(ended);
        }
        started.engine.close().await;
    };
    tokio::select! {
        () = ended => tracing::info!("the server has ended"),
        () = clock.sleep_until(late) => {
            tracing::warn!("ended without waiting any longer for the ledger: what it acknowledged is stored");
            // Its drop would wait for the writer.
            std::mem::forget(started.engine);
        }
    }
    Ok(exit)
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task of the server ended by a panic");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ServeArgs, Settings, start};
    use super::*;

    /// Ends with another code than 0: a supervisor that restarts on failure leaves 0 alone.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_ends_by_itself_asks_for_a_restart() {
        let folder = std::env::temp_dir().join(format!("soldonce-stop-{}", std::process::id()));
        let args = ServeArgs {
            listen: "127.0.0.1:0".to_owned(),
            data: folder.clone(),
            ..ServeArgs::default()
        };
        let settings = Settings::gather(&args).unwrap();
        let mut started = start(&settings, None).await.unwrap();
        started.tasks.spawn(async { panic!("planted by a test") });
        let exit = until_stopped(started).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(exit, Exit::Restart);
    }
}
