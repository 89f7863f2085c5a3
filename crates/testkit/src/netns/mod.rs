//! A network of the test's own, in which a server can be cut off in silence: nothing is refused and
//! nothing closes. Each server is in a network namespace, joined to the others by a bridge; the
//! test itself runs again in the namespace of the bridge. That needs no rights on the machine.
//! Where the kernel forbids it, servers are behind proxies that hold all traffic.

mod patroni;
mod rerun;
mod station;

use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Result, ensure};

use crate::postgres::{Postgres, PostgresOptions};
use crate::redis::{Redis, RedisOptions};
use crate::server::{Site, off_the_runtime};

pub use patroni::{Node, Patroni};
pub use rerun::within;
pub use station::Station;

/// The network that [`within`] gives to a test.
#[derive(Debug)]
pub struct Network {
    kind: Kind,
    next: AtomicU8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Namespaces,
    Proxies,
}

impl Network {
    fn of(kind: Kind) -> Self {
        // The namespace of the bridge is number 1.
        Self {
            kind,
            next: AtomicU8::new(2),
        }
    }

    /// Creates the network for a kernel that forbids namespaces: a proxy in front of each server.
    pub fn of_proxies() -> Self {
        Self::of(Kind::Proxies)
    }

    /// Starts a Redis that can be cut off.
    pub fn redis(&self, options: RedisOptions) -> Result<Station<Redis>> {
        let site = self.site()?;
        let server = options.at(site.clone()).start()?;
        Station::new(&site, server.address(), server)
    }

    /// Starts a PostgreSQL that can be cut off.
    pub fn postgres(&self, options: PostgresOptions) -> Result<Station<Postgres>> {
        let site = self.site()?;
        let server = options.at(site.clone()).start()?;
        Station::new(&site, server.address(), server)
    }

    /// Starts three PostgreSQL under Patroni with this `synchronous_mode`. The first is primary.
    pub fn patroni(&self, synchronous_mode: &str) -> Result<Patroni> {
        ensure!(
            self.kind == Kind::Namespaces,
            "a node of Patroni is cut off with all that it asks: that needs network namespaces"
        );
        off_the_runtime(|| {
            let sites = [self.site()?, self.site()?, self.site()?];
            Patroni::start(sites, synchronous_mode)
        })
    }

    fn site(&self) -> Result<Site> {
        match self.kind {
            Kind::Proxies => Ok(Site::Loopback),
            Kind::Namespaces => Site::namespace(self.next.fetch_add(1, Ordering::Relaxed)),
        }
    }
}
