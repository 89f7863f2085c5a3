//! Whether a pool stands between this process and the server.

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use tokio_postgres::config::Host;

use super::doctor::finding;
use super::{PgConfig, Postgres};
use crate::backend::{Finding, Verdict};

const SEEN_PORT: &str = "\
-- doctor_seen_port
SELECT inet_client_port()";

const CHECK: &str = "pooling";

/// The server sees the port of whoever connects to it: ours, or that of a pool or proxy.
pub(super) async fn examine(backend: &Postgres) -> Finding {
    let unseen = |found: &str| finding(CHECK, Verdict::NotVerifiable, found, "");
    match backend.settling.within(ports(&backend.config)).await {
        Some(Ok((ours, seen))) if ours == seen => {
            finding(CHECK, Verdict::Ok, "direct connection", "")
        }
        Some(Ok(_)) if backend.config.notifies() => {
            let mend = "NOTIFY needs a session: give the server's own address, or leave out notify";
            finding(CHECK, Verdict::Fail, "through a pool or proxy", mend)
        }
        Some(Ok(_)) => {
            let found = "through a pool or proxy; leases keep no session, so any mode will do";
            finding(CHECK, Verdict::Ok, found, "")
        }
        Some(Err(why)) => unseen(why),
        None => unseen("the server did not answer in time"),
    }
}

/// Our port, and the port that the server sees.
async fn ports(config: &PgConfig) -> Result<(u16, u16), &'static str> {
    let Some(Host::Tcp(host)) = config.driver().get_hosts().first() else {
        return Err("a Unix socket, which has no port");
    };
    let port = config
        .driver()
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5_432);
    let connected = TcpStream::connect((host.as_str(), port)).await;
    let stream = connected.map_err(|_| "cannot connect")?;
    let ours = stream
        .local_addr()
        .map_err(|_| "the socket has no address")?;
    let connected = config.driver().connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|_| "cannot connect")?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { connection.await.unwrap_or_default() });
    let rows = client
        .query_typed(SEEN_PORT, &[])
        .await
        .map_err(|_| "no answer")?;
    let seen: Option<i32> = rows.first().and_then(|row| row.try_get(0).ok()).flatten();
    // A pool may reach its server by a Unix socket: no port, and not ours.
    let seen = seen.and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
    Ok((ours.port(), seen))
}
