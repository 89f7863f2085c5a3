//! Where a server runs: on the loopback interface, or in a network namespace of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;

use super::{Account, PATIENCE, Port, Process, until};
use crate::program;
use crate::tools::run;

/// The first three numbers of all addresses; the namespace of the bridge has `.1`.
const NETWORK: [u8; 3] = [10, 61, 7];

const BRIDGE: &str = "bridge";

/// Where a server runs.
#[derive(Clone, Debug, Default)]
pub(crate) enum Site {
    /// With the test, on 127.0.0.1.
    #[default]
    Loopback,
    /// In a namespace that a bridge joins to the test's.
    Namespace(Arc<Namespace>),
}

/// A network namespace with one interface. It exists while the process `holder` is in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    number: u8,
    holder: Process,
}

impl Site {
    /// Creates a namespace with the address `10.61.7.<number>`, joined to the bridge.
    pub(crate) fn namespace(number: u8) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--"]);
        command.args(["sleep", "infinity"]);
        let holder = Process::start(command)?;
        let namespace = Namespace { number, holder };
        namespace.join_bridge()?;
        Ok(Self::Namespace(Arc::new(namespace)))
    }

    /// Returns the IP address that servers at this site listen on.
    pub(crate) fn ip(&self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Namespace(namespace) => address(namespace.number),
        }
    }

    /// Returns the address of a server at this site that listens on `port`.
    pub(crate) fn address(&self, port: &Port) -> SocketAddr {
        (self.ip(), port.number()).into()
    }

    /// Returns the name of the bridge port that leads to the namespace; `None` on the loopback.
    pub(crate) fn bridge_port(&self) -> Option<String> {
        match self {
            Self::Loopback => None,
            Self::Namespace(namespace) => Some(namespace.outside()),
        }
    }

    /// Builds the command of [`Account::command`] so that it runs at this site.
    pub(crate) fn command(&self, account: Account, program: &Path, signal: &str) -> Command {
        let inner = account.command(program.as_os_str(), Some(signal));
        match self {
            Self::Loopback => inner,
            Self::Namespace(namespace) => {
                let mut command = Command::new("nsenter");
                command.arg(namespace.enter()).arg("--");
                command.arg(inner.get_program()).args(inner.get_args());
                command.current_dir("/");
                command
            }
        }
    }
}

impl Namespace {
    /// Returns the name of the veth interface on the side of the bridge.
    fn outside(&self) -> String {
        format!("port{}", self.number)
    }

    fn enter(&self) -> String {
        format!("--net=/proc/{}/ns/net", self.holder.id())
    }

    /// Creates a veth pair from the bridge into the namespace, once the holder is in it.
    fn join_bridge(&self) -> Result<()> {
        let holder = self.holder.id().to_string();
        let name = |id: &str| std::fs::read_link(format!("/proc/{id}/ns/net"));
        let own = name("self")?;
        until("a namespace is made", PATIENCE, || {
            name(&holder).is_ok_and(|other| other != own)
        })?;
        let outside = self.outside();
        ip(&[
            "link", "add", "name", &outside, "type", "veth", "peer", "name", "inside",
        ])?;
        ip(&["link", "set", "inside", "netns", &holder])?;
        ip(&["link", "set", &outside, "master", BRIDGE, "up"])?;
        let address = format!("{}/24", address(self.number));
        self.ip_inside(&["address", "add", &address, "dev", "inside"])?;
        self.ip_inside(&["link", "set", "inside", "up"])?;
        self.ip_inside(&["link", "set", "lo", "up"])
    }

    fn ip_inside(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new("nsenter");
        command.arg(self.enter()).arg("--").arg(program("ip")?);
        run(command.args(args)).map(drop)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel removes the namespace later; the name of its interface must be free at once.
        ip(&["link", "delete", &self.outside()]).ok();
    }
}

/// Creates the bridge in the network namespace of this process.
pub(crate) fn make_bridge() -> Result<()> {
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", "name", BRIDGE, "type", "bridge"])?;
    ip(&[
        "address",
        "add",
        &format!("{}/24", address(1)),
        "dev",
        BRIDGE,
    ])?;
    ip(&["link", "set", BRIDGE, "up"])
}

/// Disables a port of the bridge: packets through it are dropped in silence.
pub(crate) fn close_bridge_port(port: &str) -> Result<()> {
    set_bridge_port(port, "0")
}

pub(crate) fn open_bridge_port(port: &str) -> Result<()> {
    set_bridge_port(port, "3")
}

/// Sets the state of a port, that of the spanning tree protocol: 0 disabled, 3 forwarding.
fn set_bridge_port(port: &str, state: &str) -> Result<()> {
    let mut bridge = Command::new(program("bridge")?);
    run(bridge.args(["link", "set", "dev", port, "state", state])).map(drop)
}

fn address(number: u8) -> Ipv4Addr {
    let [a, b, c] = NETWORK;
    Ipv4Addr::new(a, b, c, number)
}

fn ip(args: &[&str]) -> Result<()> {
    run(Command::new(program("ip")?).args(args)).map(drop)
}
