//! Finds a connection pooler between this process and the server.

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;

use super::config::PORT;
use super::{PgConfig, Postgres};
use crate::backend::{Finding, Verdict};

const SEEN_PORTS: &str = "\
-- doctor_seen_ports
SELECT inet_client_port(), inet_server_port()";

const CHECK: &str = "pooling";

/// Compares the ports of a connection as both ends see them: with a pool or proxy they differ. One
/// may be the same by chance, because a system gives one port to connections to several servers.
pub(super) async fn examine(backend: &Postgres) -> Finding {
    let unseen = |found: &str| Finding::new(CHECK, Verdict::NotVerifiable, found, "");
    match backend.settling.within(ports(&backend.config)).await {
        Some(Ok((ours, seen))) if ours == seen => {
            Finding::new(CHECK, Verdict::Ok, "direct connection", "")
        }
        Some(Ok(_)) if backend.config.notify => {
            let fix = "NOTIFY needs a session: give the server's own address, or leave out notify";
            Finding::new(CHECK, Verdict::Fail, "through a pool or proxy", fix)
        }
        Some(Ok(_)) => {
            let found = "through a pool or proxy; leases keep no session, so any mode will do";
            Finding::new(CHECK, Verdict::Ok, found, "")
        }
        Some(Err(why)) => unseen(why),
        None => unseen("the server did not answer in time"),
    }
}

/// Reads the ports of the client and the server, as seen here and as seen by the server.
async fn ports(config: &PgConfig) -> Result<([u16; 2], [u16; 2]), &'static str> {
    let Some(Host::Tcp(host)) = config.driver.get_hosts().first() else {
        return Err("a Unix socket, which has no port");
    };
    let port = config.driver.get_ports().first().copied().unwrap_or(PORT);
    let connected = TcpStream::connect((host.as_str(), port)).await;
    let stream = connected.map_err(|_| "cannot connect")?;
    let ours = stream.local_addr();
    let ours = ours.map_err(|_| "the socket has no address")?;
    let handshake = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut config.tls(), host);
    let handshake = handshake.map_err(|_| "cannot connect")?;
    let connected = config.driver.connect_raw(stream, handshake).await;
    let (client, connection) = connected.map_err(|_| "cannot connect")?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { connection.await.unwrap_or_default() });
    let rows = client.query_typed(SEEN_PORTS, &[]).await;
    let rows = rows.map_err(|_| "no answer")?;
    // A pool may connect to its server by a Unix socket: no port, so not ours.
    let seen = |column: usize| -> u16 {
        let port = rows.first().and_then(|row| row.try_get(column).ok());
        let port: Option<i32> = port.flatten();
        port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0)
    };
    Ok(([ours.port(), port], [seen(0), seen(1)]))
}
