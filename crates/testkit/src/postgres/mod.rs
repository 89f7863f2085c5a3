//! Private PostgreSQL servers: each a copy of one fresh cluster, with a port and a folder of its
//! own, ended when its value is dropped or its test process ends, in any way.

mod archive;
mod bouncer;
mod standby;
mod template;

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use rustix::process::Signal;

use crate::server::{
    Account, Folder, PATIENCE, Port, Process, Site, off_the_runtime, until, until_some,
};
use crate::tools::run;
use crate::{Authority, Certificate, program};

use archive::Origin;

pub use archive::Archive;
pub use bouncer::PgBouncer;
pub use standby::PostgresPair;

const DATA: &str = "data";
const LOG: &str = "postgres.log";
const USER: &str = "postgres";

/// Longest wait for a server to end after SIGQUIT, before it is killed.
const FAREWELL: Duration = Duration::from_secs(1);

/// Lines of `pg_hba.conf`: every client of a private server may do everything.
const TRUST_ALL: &str = "host all all all trust\nhost replication all all trust\n";

/// Options of a private PostgreSQL. Without any it never waits for the disk.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    lines: Vec<String>,
    follows: Option<SocketAddr>,
    /// The base backup that it begins with, in place of a fresh cluster.
    origin: Option<Origin>,
    tls: Option<Tls>,
    /// Lines of `pg_hba.conf` before [`TRUST_ALL`].
    access: Option<String>,
    site: Site,
}

/// The server's certificate, and the authority (PEM) that verifies certificates of clients.
#[derive(Clone, Debug)]
struct Tls {
    own: Certificate,
    clients: String,
}

impl PostgresOptions {
    /// Speaks TLS with clients that ask for it, and verifies their certificates by `clients`.
    #[must_use]
    pub fn tls(mut self, own: &Certificate, clients: &Authority) -> Self {
        self.tls = Some(Tls {
            own: own.clone(),
            clients: clients.pem(),
        });
        self.line("ssl = on")
            .line("ssl_cert_file = 'own.pem'")
            .line("ssl_key_file = 'own.key'")
            .line("ssl_ca_file = 'clients.pem'")
    }

    /// Adds these lines of `pg_hba.conf` before those that trust every client.
    #[must_use]
    pub fn access(mut self, lines: &str) -> Self {
        self.access = Some(lines.to_owned());
        self
    }

    /// Waits for the disk at each commit (`fsync`), as in production.
    #[must_use]
    pub fn durable(self) -> Self {
        self.line("fsync = on").line("full_page_writes = on")
    }

    /// Follows the primary at this address, which must be a copy of the same fresh cluster: any
    /// other server of this module.
    #[must_use]
    pub fn standby_of(mut self, primary: SocketAddr) -> Self {
        self.follows = Some(primary);
        self
    }

    /// Adds a line of configuration; a later line wins over an earlier one of the same name.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Starts the server and waits until it takes connections.
    pub fn start(self) -> Result<Postgres> {
        off_the_runtime(|| Postgres::start_with(&self))
    }

    /// Runs the server at `site` instead of on the loopback interface.
    pub(crate) fn at(mut self, site: Site) -> Self {
        self.site = site;
        self
    }

    fn text(&self, port: u16) -> String {
        let ip = self.site.ip();
        let mut text = format!(
            "listen_addresses = '{ip}'\nport = {port}\nunix_socket_directories = ''\n\
             fsync = off\nfull_page_writes = off\n\
             shared_buffers = 16MB\nmax_connections = 200\nwal_level = replica\n\
             log_line_prefix = '%m [%p] '\nlc_messages = 'C'\n"
        );
        if let Some(primary) = self.follows {
            let (host, port) = (primary.ip(), primary.port());
            let conninfo = format!("host={host} port={port} user={USER}");
            text.extend(["primary_conninfo = '", &conninfo, "'\nhot_standby = on\n"]);
        }
        text.extend(self.lines.iter().flat_map(|line| [line.as_str(), "\n"]));
        text
    }
}

/// A private PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    folder: Folder,
    port: Port,
    account: Account,
    site: Site,
}

impl Postgres {
    /// Starts a PostgreSQL that never waits for the disk, and waits until it takes connections.
    pub fn start() -> Result<Self> {
        PostgresOptions::default().start()
    }

    /// Returns the default options, to be changed and started by [`PostgresOptions::start`].
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    fn start_with(options: &PostgresOptions) -> Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::new("postgres")?;
        let port = Port::reserve()?;
        match &options.origin {
            Some(origin) => origin.copy_to(&folder.join(DATA))?,
            None => template::copy_to(&folder.join(DATA), account)?,
        }
        let data = folder.join(DATA);
        fs::write(data.join("postgresql.conf"), options.text(port.number()))?;
        let access = options.access.as_deref().unwrap_or_default();
        fs::write(data.join("pg_hba.conf"), format!("{access}{TRUST_ALL}"))?;
        if let Some(tls) = &options.tls {
            fs::write(data.join("clients.pem"), &tls.clients)?;
            for file in tls.own.write(&data, "own")? {
                fs::set_permissions(&file, Permissions::from_mode(0o600))?;
                account.owns(&file)?;
            }
        }
        if options.follows.is_some() {
            fs::write(data.join("standby.signal"), "")?;
        }
        let process = start_process(&folder, account, &options.site)?;
        let mut server = Self {
            process,
            folder,
            port,
            account,
            site: options.site.clone(),
        };
        server.await_ready()?;
        Ok(server)
    }

    /// Waits for `ready` or `standby` in line 8 of `postmaster.pid`, as `pg_ctl` does.
    fn await_ready(&mut self) -> Result<()> {
        until_some("PostgreSQL takes connections", PATIENCE, || {
            if let Some(status) = self.process.ended()? {
                bail!("PostgreSQL ended ({status}): {}", self.folder.tail(LOG));
            }
            let state = fs::read_to_string(self.folder.join(DATA).join("postmaster.pid"));
            let state = state.unwrap_or_default();
            let of_this_start = state.lines().next() == Some(&self.pid().to_string());
            let word = state.lines().nth(7).unwrap_or_default().trim();
            Ok((of_this_start && ["ready", "standby"].contains(&word)).then_some(()))
        })
    }

    /// Returns the URL of the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Returns the URL of a database of this server.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.address())
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.site.address(&self.port)
    }

    /// Returns the id of its first process, the postmaster.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Creates an empty database and returns its name, which is new in this test process.
    pub fn database(&self) -> Result<String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.query(&format!("-- create_database\nCREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// Runs SQL in the database `postgres` by `psql`; returns rows as lines, columns parted by `|`.
    pub fn query(&self, sql: &str) -> Result<String> {
        query(&self.url(), sql)
    }

    /// Ends it without a checkpoint (SIGQUIT, `pg_ctl stop -m immediate`): the next start recovers
    /// from the WAL.
    pub fn stop_immediately(&mut self) -> Result<()> {
        self.process.signal(Signal::QUIT)?;
        self.process.wait().map(drop)
    }

    /// Kills all of its processes at once. It can be started again.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Stops all of its processes (SIGSTOP): connections stay open, nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        self.process.pause_family()
    }

    /// Resumes it after [`Postgres::pause`] (SIGCONT).
    pub fn resume(&mut self) -> Result<()> {
        self.process.resume_family()
    }

    /// Kills it if it runs, and starts it again on the same port with its data. Returns when it
    /// takes connections.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.process = start_process(&self.folder, self.account, &self.site)?;
        self.await_ready()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Killed, it would leave a block of shared memory behind, of which a machine has some
        // thousands. One that is paused cannot end by itself, and is killed after the wait.
        let asked = self.process.signal(Signal::QUIT);
        let has_ended = || matches!(self.process.ended(), Ok(Some(_)));
        let ended = asked.and_then(|()| until("PostgreSQL ends", FAREWELL, has_ended));
        // The caller that drops it has no use for the reason.
        ended.ok();
    }
}

/// Runs SQL in the database of `url` by `psql`; returns rows as lines, columns parted by `|`.
pub fn query(url: &str, sql: &str) -> Result<String> {
    let mut psql = psql(url)?;
    psql.args(["--tuples-only", "--no-align", "--command", sql]);
    let rows = run(psql.env("PGCONNECT_TIMEOUT", "20"));
    let rows = rows.map_err(|error| anyhow!("{sql}: {error}"))?;
    Ok(rows.trim_end().to_owned())
}

/// Builds a `psql` that ends with the first statement that fails.
fn psql(url: &str) -> Result<Command> {
    let mut psql = Command::new(program("psql")?);
    psql.env("LC_ALL", "C");
    psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    psql.args(["--dbname", url]);
    Ok(psql)
}

fn start_process(folder: &Folder, account: Account, site: &Site) -> Result<Process> {
    let mut command = site.command(account, &program("postgres")?, "QUIT");
    command.arg("-D").arg(folder.join(DATA));
    Process::start_logged(command, &folder.join(LOG))
}

/// Copies a database to another one, which is empty, by `pg_dump` and `psql`: as rows and
/// statements, not as pages.
pub fn carry_over(from: &str, to: &str) -> Result<()> {
    let mut dump = Command::new(program("pg_dump")?);
    let dumped = run(dump.args(["--no-owner", "--dbname", from]))?;
    let folder = Folder::new("dump")?;
    let file = folder.join("dump.sql");
    fs::write(&file, dumped)?;
    run(psql(to)?.arg("--file").arg(file)).map(drop)
}
