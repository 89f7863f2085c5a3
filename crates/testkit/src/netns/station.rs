//! A server that can be cut off from all others.

use std::net::SocketAddr;

use anyhow::Result;

use crate::chaos::{Fault, FaultProxy};
use crate::server::{Site, close_bridge_port, open_bridge_port};

/// A server, and how it is cut off.
#[derive(Debug)]
pub struct Station<S> {
    /// The server.
    pub server: S,
    cable: Cable,
    listens: SocketAddr,
}

#[derive(Debug)]
enum Cable {
    /// By its port of the bridge.
    Bridge(String),
    /// By a proxy that clients and replicas connect to. What this server opens bypasses it.
    FaultProxy(FaultProxy),
}

impl<S> Station<S> {
    pub(super) fn new(site: &Site, listens: SocketAddr, server: S) -> Result<Self> {
        let cable = match site.bridge_port() {
            Some(port) => Cable::Bridge(port),
            None => Cable::FaultProxy(FaultProxy::to(listens)?),
        };
        Ok(Self {
            server,
            cable,
            listens,
        })
    }

    /// Returns the address that clients, replicas and standbys must use for a cut to affect them.
    pub fn address(&self) -> SocketAddr {
        match &self.cable {
            Cable::Bridge(_) => self.listens,
            Cable::FaultProxy(proxy) => proxy.address(),
        }
    }

    /// Returns `url`, one of the server, with the address of [`Station::address`] in it.
    pub fn reach(&self, url: &str) -> String {
        url.replace(&self.listens.to_string(), &self.address().to_string())
    }

    /// Cuts the server off: packets are dropped, connections stay open.
    pub fn cut(&self) -> Result<()> {
        match &self.cable {
            Cable::Bridge(port) => close_bridge_port(port),
            Cable::FaultProxy(proxy) => {
                proxy.set(Fault::Cut);
                Ok(())
            }
        }
    }

    /// Connects the server to the others again.
    pub fn heal(&self) -> Result<()> {
        match &self.cable {
            Cable::Bridge(port) => open_bridge_port(port),
            Cable::FaultProxy(proxy) => {
                proxy.heal();
                Ok(())
            }
        }
    }
}
