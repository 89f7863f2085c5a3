//! Three PostgreSQL under Patroni with the settings of `deploy/patroni`, and one etcd. Each node
//! has a network namespace and a process namespace: it is cut off, stopped and killed as a whole.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Station;
use crate::program;
use crate::server::{Account, Folder, PATIENCE, Process, Site, until};

const SETTINGS: &str = include_str!("../../../../deploy/patroni/patroni.yml");
/// The address of etcd, at the bridge. No namespace has another server at these ports.
const ETCD: &str = "10.61.7.1:2379";
const POSTGRES: u16 = 5_432;
const REST: u16 = 8_008;
const PASSWORD: &str = "word";
/// Time-out of a request to a node that may be cut off or stopped.
const LOOK: Duration = Duration::from_secs(1);

/// Three nodes and etcd.
#[derive(Debug)]
pub struct Patroni {
    /// The nodes.
    pub nodes: Vec<Station<Node>>,
    /// The role of the followers. One that is not in the quorum yet is not promoted.
    follows: &'static str,
    _etcd: Process,
    _folder: Folder,
}

/// Patroni and its PostgreSQL on one machine.
#[derive(Debug)]
pub struct Node {
    process: Process,
    folder: PathBuf,
    site: Site,
}

impl Patroni {
    pub(super) fn start(sites: [Site; 3], synchronous_mode: &str) -> Result<Self> {
        let folder = Folder::new("patroni")?;
        let etcd = start_etcd(&folder)?;
        let mode = format!("synchronous_mode: {synchronous_mode}");
        let settings = SETTINGS.replace("synchronous_mode: quorum", &mode);
        // The nodes share the files of this machine.
        let settings = settings + "  parameters: {unix_socket_directories: \"\"}\n";
        let mut nodes: Vec<Station<Node>> = Vec::new();
        for (site, number) in sites.into_iter().zip(1..) {
            let folder = folder.join(&format!("node{number}"));
            fs::create_dir(&folder)?;
            fs::write(folder.join("patroni.yml"), &settings)?;
            let node = Node {
                process: start_node(&folder, &site)?,
                folder,
                site: site.clone(),
            };
            nodes.push(Station::new(&site, node.postgres(), node)?);
            // The first one makes the cluster, the others copy it.
            until("a node leads", 3 * PATIENCE, || primary(&nodes).is_some())?;
        }
        let follows = match synchronous_mode {
            "quorum" => "quorum",
            _ => "replica",
        };
        let cluster = Self {
            nodes,
            follows,
            _etcd: etcd,
            _folder: folder,
        };
        cluster.await_whole()?;
        Ok(cluster)
    }

    /// Returns the URL of the database, with the addresses of all nodes.
    pub fn url(&self) -> String {
        let hosts = self
            .nodes
            .iter()
            .map(|node| node.server.postgres().to_string());
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("postgres://postgres:{PASSWORD}@{hosts}/postgres?target_session_attrs=read-write")
    }

    /// Finds the index of the node that is the primary; `None` if none says so.
    pub fn primary(&self) -> Option<usize> {
        primary(&self.nodes)
    }

    /// Waits until one node is the primary and the two others follow it.
    pub fn await_whole(&self) -> Result<()> {
        until("two nodes follow one that leads", 3 * PATIENCE, || {
            let follow = |node: &&Station<Node>| node.server.is(self.follows);
            self.nodes.iter().filter(follow).count() == 2 && self.primary().is_some()
        })
    }

    /// Switches over to another primary, as `patronictl switchover` does.
    pub fn switch_over(&self) -> Result<()> {
        let leads = self.nodes.iter().find(|node| node.server.is("primary"));
        let node = &leads.context("no node leads")?.server;
        let wish = format!("{{\"leader\":\"{}\"}}", node.name());
        let status = node.ask("POST", "switchover", &wish, PATIENCE)?;
        ensure!(status == 200, "the switchover was answered with {status}");
        Ok(())
    }
}

fn primary(nodes: &[Station<Node>]) -> Option<usize> {
    nodes.iter().position(|node| node.server.is("primary"))
}

impl Node {
    /// Returns the address its PostgreSQL listens on.
    pub fn postgres(&self) -> SocketAddr {
        (self.site.ip(), POSTGRES).into()
    }

    /// Kills Patroni and PostgreSQL at once, as the loss of the machine does.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again after [`Node::kill`], with the data that it had.
    pub fn restart(&mut self) -> Result<()> {
        self.process = start_node(&self.folder, &self.site)?;
        Ok(())
    }

    /// Stops all of its processes (SIGSTOP): connections stay open, nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        self.process.pause_family()
    }

    /// Resumes it after [`Node::pause`] (SIGCONT).
    pub fn resume(&mut self) -> Result<()> {
        self.process.resume_family()
    }

    fn name(&self) -> String {
        self.site.ip().to_string()
    }

    /// Tells whether Patroni says that this is its role: `primary`, `replica`, `quorum`.
    fn is(&self, role: &str) -> bool {
        self.ask("GET", role, "", LOOK)
            .is_ok_and(|status| status == 200)
    }

    /// Sends a request to Patroni's REST API and returns the status of the response.
    fn ask(&self, method: &str, path: &str, body: &str, patience: Duration) -> Result<u16> {
        let mut stream = TcpStream::connect_timeout(&(self.site.ip(), REST).into(), LOOK)?;
        stream.set_read_timeout(Some(patience))?;
        let length = body.len();
        write!(
            stream,
            "{method} /{path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split(' ').nth(1).context("no status")?.parse()?)
    }
}

fn start_etcd(folder: &Folder) -> Result<Process> {
    let (clients, peers) = (format!("http://{ETCD}"), "http://10.61.7.1:2380");
    let mut command = Account::Own.command(program("etcd")?.as_os_str(), Some("KILL"));
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.arg("--unsafe-no-fsync");
    command.arg(format!("--initial-cluster=default={peers}"));
    command.arg(format!("--initial-advertise-peer-urls={peers}"));
    command.arg(format!("--listen-peer-urls={peers}"));
    command.arg(format!("--listen-client-urls={clients}"));
    command.arg(format!("--advertise-client-urls={clients}"));
    Process::start_logged(command, &folder.join("etcd.log"))
}

/// Starts Patroni as the first process of a user and a process namespace. PostgreSQL refuses root,
/// so it runs as another user. Patroni leaves PostgreSQL to the process that adopts orphans: in a
/// namespace of its own all of the node ends with its first process.
fn start_node(folder: &Path, site: &Site) -> Result<Process> {
    let (patroni, etcd, initdb) = (program("patroni")?, program("etcd")?, program("initdb")?);
    let above = |path: &PathBuf| {
        path.ancestors()
            .nth(2)
            .map(PathBuf::from)
            .context("no folder")
    };
    let python = above(&etcd)?.join("debian/usr/lib/python3/dist-packages");
    let mut command = site.command(Account::Own, "unshare".as_ref(), "KILL");
    command.args([
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        "--pid",
        "--mount-proc",
    ]);
    command.args(["--fork", "--kill-child", "--"]);
    command
        .arg(program("python3")?)
        .arg(&patroni)
        .arg(folder.join("patroni.yml"));
    command.env(
        "PYTHONPATH",
        std::env::join_paths([above(&patroni)?, python])?,
    );
    command.env("PATRONI_NAME", site.ip().to_string());
    command.env("PATRONI_ETCD3_HOSTS", ETCD);
    for (server, port) in [("RESTAPI", REST), ("POSTGRESQL", POSTGRES)] {
        for place in ["LISTEN", "CONNECT_ADDRESS"] {
            command.env(
                format!("PATRONI_{server}_{place}"),
                format!("{}:{port}", site.ip()),
            );
        }
    }
    for (user, name) in [("SUPERUSER", "postgres"), ("REPLICATION", "replicator")] {
        command.env(format!("PATRONI_{user}_USERNAME"), name);
        command.env(format!("PATRONI_{user}_PASSWORD"), PASSWORD);
    }
    command.env("PATRONI_POSTGRESQL_DATA_DIR", folder.join("data"));
    command.env("PATRONI_POSTGRESQL_PGPASS", folder.join("pgpass"));
    // A link to it is in a folder of links. Unpacked without being installed, the programs do not
    // find their libraries.
    let programs = initdb.canonicalize()?.with_file_name("");
    ensure!(
        programs.join("pg_rewind").is_file(),
        "Patroni needs a PostgreSQL that is installed: apt-get install -y postgresql"
    );
    command.env("PATRONI_POSTGRESQL_BIN_DIR", programs);
    Process::start_logged(command, &folder.join("log"))
}
