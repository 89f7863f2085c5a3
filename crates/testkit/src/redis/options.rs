//! The options of a private Redis.

use std::net::SocketAddr;

use anyhow::Result;

use super::tls::Tls;
use super::{ClientCertificate, Ports, Redis};
use crate::server::Site;
use crate::{Authority, Certificate};

/// Options of a private Redis. Without any it keeps nothing on disk.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    lines: Vec<String>,
    pub(super) acl: Option<String>,
    pub(super) nodes: Option<String>,
    pub(super) tls: Option<Tls>,
    pub(super) site: Site,
}

impl RedisOptions {
    /// Logs every write, and has it on disk before it answers.
    #[must_use]
    pub fn appendonly(self) -> Self {
        self.line("appendonly yes").line("appendfsync always")
    }

    /// Bounds the memory and refuses writes above it, for instance `3mb`.
    #[must_use]
    pub fn maxmemory(self, bytes: &str) -> Self {
        self.line(&format!("maxmemory {bytes}"))
            .line("maxmemory-policy noeviction")
    }

    /// Takes users from the text of an ACL file. Unless the text says otherwise, the default user
    /// may do everything.
    #[must_use]
    pub fn acl(mut self, users: &str) -> Self {
        self.acl = Some(users.to_owned());
        self
    }

    /// Listens for clients with TLS, too, at [`Redis::tls_address`], and verifies their
    /// certificates by the authority.
    #[must_use]
    pub fn tls(mut self, own: &Certificate, by: &Authority, clients: ClientCertificate) -> Self {
        self.tls = Some(Tls::new(own, by, clients));
        self
    }

    /// Follows the primary at this address.
    #[must_use]
    pub fn replica_of(self, primary: SocketAddr) -> Self {
        self.line(&format!("replicaof {} {}", primary.ip(), primary.port()))
    }

    /// Adds a line of configuration; a later line wins over an earlier one of the same name.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<Redis> {
        Redis::launch(self, Ports::reserve()?)?.ready()
    }

    /// Runs the server at `site` instead of on the loopback interface.
    pub(crate) fn at(mut self, site: Site) -> Self {
        self.site = site;
        self
    }

    /// Builds the configuration file, without the ports and paths of a single server.
    pub(super) fn text(&self) -> String {
        let base = "protected-mode no\nsave \"\"\nrepl-diskless-sync-delay 0\n\
                    repl-ping-replica-period 1\nenable-debug-command local\n";
        let bind = self.site.ip();
        format!("bind {bind}\n{base}{}\n", self.lines.join("\n"))
    }
}
