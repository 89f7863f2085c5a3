//! Private Redis servers: each with a port and a folder of its own, ended when its value is dropped
//! or its test process ends, in any way.

mod cluster;
mod options;
mod pair;
mod tls;
mod wire;

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::program;
use crate::server::{Account, Folder, PATIENCE, Port, Process, Site, until_some};

pub use cluster::{FullCoverage, RedisCluster};
pub use options::RedisOptions;
pub use pair::RedisPair;
pub use tls::ClientCertificate;
pub use wire::Reply;

use wire::Wire;

const CONFIG: &str = "redis.conf";
const USERS: &str = "users.acl";
const NODES: &str = "nodes.conf";
const LOG: &str = "redis.log";
const DUMP: &str = "dump.rdb";

/// The data that a server finds when it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// What it had written to disk. It writes nothing unless an option asked for that.
    Kept,
    /// Nothing, as after the loss of the disk.
    Lost,
}

/// A copy of a server's RDB file.
#[derive(Clone, Debug)]
pub struct Snapshot(Vec<u8>);

/// A private Redis.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    folder: Folder,
    ports: Ports,
    options: RedisOptions,
}

/// The ports for clients, for clients with TLS, and in a cluster for other nodes.
#[derive(Debug)]
struct Ports {
    clients: Port,
    encrypted: Port,
    nodes: Port,
}

impl Ports {
    fn reserve() -> Result<Self> {
        Ok(Self {
            clients: Port::reserve()?,
            encrypted: Port::reserve()?,
            nodes: Port::reserve()?,
        })
    }
}

impl Redis {
    /// Starts a Redis that keeps nothing on disk, and waits until it answers.
    pub fn start() -> Result<Self> {
        RedisOptions::default().start()
    }

    /// Returns the default options, to be changed and started by [`RedisOptions::start`].
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// Starts `count` servers that know nothing of each other, as the nodes of Redlock are.
    pub fn independent(count: usize) -> Result<Vec<Self>> {
        (0..count).map(|_| Self::start()).collect()
    }

    /// Starts the process without waiting for its first answer.
    fn launch(options: RedisOptions, ports: Ports) -> Result<Self> {
        let folder = Folder::new("redis")?;
        write_files(&options, &folder, &ports)?;
        let process = start_process(&folder, &options.site)?;
        Ok(Self {
            process,
            folder,
            ports,
            options,
        })
    }

    fn ready(mut self) -> Result<Self> {
        self.await_answer()?;
        Ok(self)
    }

    /// Waits until the server has loaded its data. The error `NOAUTH` is an answer too.
    fn await_answer(&mut self) -> Result<()> {
        until_some("Redis answers", PATIENCE, || {
            if let Some(status) = self.process.ended()? {
                bail!("Redis ended ({status}): {}", self.folder.tail(LOG));
            }
            let reply = self.ask(&["PING"]).ok();
            Ok(reply.filter(
                |reply| !matches!(reply, Reply::Error(message) if message.starts_with("LOADING")),
            ))
        })?;
        Ok(())
    }

    /// Returns its URL without TLS, `redis://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Returns the address it listens on, without TLS.
    pub fn address(&self) -> SocketAddr {
        self.options.site.address(&self.ports.clients)
    }

    /// Returns its address for clients with TLS, used only if [`RedisOptions::tls`] asked for it.
    pub fn tls_address(&self) -> SocketAddr {
        self.options.site.address(&self.ports.encrypted)
    }

    /// Returns the id of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Runs one command, on a connection of its own, and returns its reply as it came.
    pub fn ask(&self, command: &[&str]) -> Result<Reply> {
        Wire::open(self.address())?.ask(command)
    }

    /// Runs one command, on a connection of its own, and returns the text of its reply.
    pub fn cli(&self, command: &[&str]) -> Result<String> {
        let reply = self.ask(command)?.text();
        reply.with_context(|| format!("{command:?}"))
    }

    /// Runs one command as this user of the ACL file and returns its reply as it came.
    pub fn ask_as(&self, user: &str, password: &str, command: &[&str]) -> Result<Reply> {
        let mut wire = Wire::open(self.address())?;
        wire.ask(&["AUTH", user, password])?.text()?;
        wire.ask(command)
    }

    /// Reads a field of `INFO`, such as `master_replid`; `None` if there is no such field.
    pub fn info(&self, field: &str) -> Result<Option<String>> {
        let info = self.cli(&["INFO"])?;
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        Ok(lines.find_map(|(name, value)| (name == field).then(|| value.to_owned())))
    }

    /// Kills it at once, as a power cut does. It can be started again.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Stops it (SIGSTOP): connections stay open, nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Resumes it after [`Redis::pause`] (SIGCONT).
    pub fn resume(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Saves all data (`SAVE`) and returns a copy of the RDB file.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.cli(&["SAVE"])?;
        Ok(Snapshot(fs::read(self.folder.join(DUMP))?))
    }

    /// Kills it if it runs, and starts it again on the same port with the data of `snapshot` and
    /// nothing that was written later, as after a restore from a backup. Not for a server that logs
    /// its writes: it would read its log instead.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.kill()?;
        fs::write(self.folder.join(DUMP), &snapshot.0)?;
        self.restart(Data::Kept)
    }

    /// Kills it if it runs, and starts it again on the same port. Returns when it answers.
    pub fn restart(&mut self, data: Data) -> Result<()> {
        self.kill()?;
        if data == Data::Lost {
            lose_data(&self.folder)?;
            write_files(&self.options, &self.folder, &self.ports)?;
        }
        self.process = start_process(&self.folder, &self.options.site)?;
        self.await_answer()
    }
}

fn write_files(options: &RedisOptions, folder: &Folder, ports: &Ports) -> Result<()> {
    let mut config = options.text();
    let mut add = |name: &str, value: &str| config.extend([name, " ", value, "\n"]);
    add("port", &ports.clients.number().to_string());
    add("dir", &folder.path().display().to_string());
    add("logfile", &folder.join(LOG).display().to_string());
    if let Some(users) = &options.acl {
        fs::write(folder.join(USERS), users)?;
        add("aclfile", &folder.join(USERS).display().to_string());
    }
    if let Some(tls) = &options.tls {
        add("tls-port", &ports.encrypted.number().to_string());
        tls.write(folder, &mut add)?;
    }
    if let Some(nodes) = &options.nodes {
        fs::write(folder.join(NODES), nodes)?;
        add("cluster-enabled", "yes");
        add("cluster-config-file", NODES);
        add("cluster-port", &ports.nodes.number().to_string());
    }
    fs::write(folder.join(CONFIG), config)?;
    Ok(())
}

fn start_process(folder: &Folder, site: &Site) -> Result<Process> {
    let mut command = site.command(Account::Own, &program("redis-server")?, "KILL");
    command.arg(folder.join(CONFIG));
    Process::start(command)
}

/// Removes what the server wrote: all but its lock, its log and its configuration.
fn lose_data(folder: &Folder) -> Result<()> {
    for entry in folder.path().read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if ![CONFIG, USERS, LOG].iter().any(|kept| *kept == name)
            && !name.to_string_lossy().ends_with(".lock")
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
