//! `PgBouncer` in transaction mode in front of a private PostgreSQL.

use std::fs;

use anyhow::Result;

use super::{Postgres, USER};
use crate::program;
use crate::server::{Account, Folder, Port, Process, Site};

const CONFIG: &str = "pgbouncer.ini";
const LOG: &str = "pgbouncer.log";

/// A pool in transaction mode: each transaction may get another connection of the server, so no
/// state of a session lasts.
#[derive(Debug)]
pub struct PgBouncer {
    _process: Process,
    _folder: Folder,
    port: Port,
}

impl PgBouncer {
    /// Starts one with up to `connections` connections to `server` per database.
    pub fn start(server: &Postgres, connections: u32) -> Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::new("pgbouncer")?;
        let port = Port::reserve()?;
        let config = format!(
            "[databases]\n* = host={} port={} user={USER}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 500\n\
             ignore_startup_parameters = extra_float_digits\n",
            server.address().ip(),
            server.address().port(),
            port.number(),
        );
        fs::write(folder.join(CONFIG), config)?;
        let mut command = account.command(program("pgbouncer")?.as_os_str(), Some("KILL"));
        command.arg(folder.join(CONFIG));
        let process = Process::start_listening(command, (&folder, LOG), &port)?;
        Ok(Self {
            _process: process,
            _folder: folder,
            port,
        })
    }

    /// Returns the URL of a database of the server, through the pool.
    pub fn url_of(&self, database: &str) -> String {
        format!(
            "postgres://{USER}@{}/{database}",
            Site::Loopback.address(&self.port)
        )
    }
}
