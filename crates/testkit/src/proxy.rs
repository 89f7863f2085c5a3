//! nginx or haproxy in front of a server, on the loopback, with keep-alive connections to it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};

use crate::server::{Account, Folder, Port, Process, Site};
use crate::{program, workspace};

const CONFIG: &str = "proxy.conf";
const LOG: &str = "proxy.log";
/// The page that tells operators how to configure nginx.
const MANUAL: &str = "docs/operations.md";

/// Which proxy it is and how it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKind {
    /// nginx.
    Nginx,
    /// nginx with a cache of what its server lets it cache, whose key has the second of its clock:
    /// by expiry alone it would serve an answer that is valid for one second for up to two.
    NginxCache,
    /// nginx as the manual configures it, without its TLS.
    NginxManual,
    /// haproxy.
    Haproxy,
    /// haproxy that speaks HTTP/2 to the server: requests of all its clients share a connection.
    HaproxyHttp2,
}

impl ProxyKind {
    /// Every kind without a cache.
    pub const ALL: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::HaproxyHttp2];

    fn name(self) -> &'static str {
        match self {
            Self::Nginx | Self::NginxCache | Self::NginxManual => "nginx",
            Self::Haproxy | Self::HaproxyHttp2 => "haproxy",
        }
    }

    /// Returns the configuration file. Apart from the manual's it has only what operators write who
    /// want keep-alive connections, and a request that failed is not sent again.
    fn config(self, folder: &Folder, listen: SocketAddr, upstream: SocketAddr) -> Result<String> {
        let begin = nginx_begin(folder.path());
        let folder = folder.path().display();
        Ok(match self {
            Self::Nginx | Self::NginxCache => format!(
                "{begin}{}upstream shop {{ server {upstream}; keepalive 8; }}\n\
                 server {{\nlisten {listen};\nkeepalive_requests 100000;\nlocation / {{\n\
                 proxy_pass http://shop;\nproxy_http_version 1.1;\n\
                 proxy_set_header Connection \"\";\nproxy_next_upstream off;\n{}}}\n}}\n}}\n",
                if self == Self::NginxCache {
                    format!("proxy_cache_path {folder}/cache keys_zone=seats:1m;\n")
                } else {
                    String::new()
                },
                if self == Self::NginxCache {
                    "proxy_cache seats;\nproxy_cache_lock on;\n\
                     proxy_cache_key \"$request_uri $http_authorization $time_iso8601\";\n"
                } else {
                    ""
                }
            ),
            Self::NginxManual => {
                let manual = fs::read_to_string(workspace()?.join(MANUAL))?;
                let mut blocks = manual.split("```\n");
                let block = blocks.find(|block| block.starts_with("upstream "));
                let block = block.context("the manual configures no nginx")?;
                let block = block.replace("127.0.0.1:8080", &upstream.to_string());
                let block = block.replace("443 ssl", &listen.to_string());
                format!("{begin}{block}}}\n")
            }
            Self::Haproxy | Self::HaproxyHttp2 => format!(
                "defaults\nmode http\ntimeout connect 60s\ntimeout client 60s\ntimeout server 60s\n\
                 retries 0\nhttp-reuse always\n\
                 frontend shop\nbind {listen}\ndefault_backend servers\n\
                 backend servers\nserver one {upstream}{}\n",
                if self == Self::HaproxyHttp2 {
                    " proto h2"
                } else {
                    ""
                }
            ),
        })
    }
}

/// Returns the begin of a configuration of nginx, up to its servers.
fn nginx_begin(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log stderr;\n\
         events {{ worker_connections 512; }}\nhttp {{\naccess_log off;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\nuwsgi_temp_path {folder}/uwsgi;\n\
         scgi_temp_path {folder}/scgi;\n"
    )
}

/// A proxy in front of a server.
#[derive(Debug)]
pub struct ReverseProxy {
    _process: Process,
    _folder: Folder,
    port: Port,
}

impl ReverseProxy {
    /// Starts a proxy in front of `upstream`, and waits until it takes connections.
    pub fn start(kind: ProxyKind, upstream: SocketAddr) -> Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::new(kind.name())?;
        account.owns(folder.path())?;
        let port = Port::reserve()?;
        let config = kind.config(&folder, Site::Loopback.address(&port), upstream)?;
        fs::write(folder.join(CONFIG), config)?;
        let mut command = account.command(program(kind.name())?.as_os_str(), Some("KILL"));
        match kind {
            ProxyKind::Nginx | ProxyKind::NginxCache | ProxyKind::NginxManual => {
                command.arg("-p").arg(folder.path()).arg("-c")
            }
            ProxyKind::Haproxy | ProxyKind::HaproxyHttp2 => command.args(["-db", "-f"]),
        };
        command.arg(folder.join(CONFIG));
        let process = Process::start_listening(command, (&folder, LOG), &port)?;
        Ok(Self {
            _process: process,
            _folder: folder,
            port,
        })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        Site::Loopback.address(&self.port)
    }
}
