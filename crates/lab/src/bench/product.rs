//! The real server under test: `soldonce serve` in a process of its own, on a ledger in a folder of
//! its own.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use axum::http::Method;
use soldonce_clock::{Clock, SystemClock};
use soldonce_engine::ledger::postgres::{self, PostgresOptions};

use super::process::Cores;
use super::served::{Served, admin_key, product};
use crate::client::Client;

/// `soldonce serve`.
pub(super) struct Product {
    pub(super) address: SocketAddr,
    pub(super) id: u32,
    pub(super) admin: Client,
    served: Served,
}

impl Product {
    /// Starts this same program as the server and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
    pub(super) async fn start(data: &Path, cores: Cores) -> anyhow::Result<Self> {
        Self::start_with(["--data".as_ref(), data.as_os_str()], cores).await
    }

    /// As [`Product::start`], on an empty database.
    ///
    /// # Errors
    /// As there, and when the database cannot be prepared.
    pub(super) async fn start_on(url: &str, cores: Cores) -> anyhow::Result<Self> {
        let options = PostgresOptions::new(url.to_owned());
        postgres::migrate(&options)
            .await
            .context("no tables were made")?;
        Self::start_with(["--database-url".as_ref(), url.as_ref()], cores).await
    }

    async fn start_with(ledger: [&OsStr; 2], cores: Cores) -> anyhow::Result<Self> {
        let key = admin_key();
        let mut command = product(&key)?;
        let served = Served::start(command.args(ledger), cores).await?;
        Ok(Self {
            address: served.address,
            id: served.id,
            admin: Client::new(&format!("http://{}", served.address), &key)?,
            served,
        })
    }

    /// From the start of its process until it said that it is ready.
    ///
    /// # Errors
    /// When it is not although it serves.
    pub(super) async fn ready(&self) -> anyhow::Result<Duration> {
        let answer = self.admin.send(Method::GET, "/readyz", None).await?;
        let took = SystemClock.boot().since(self.served.began);
        answer.into_success().context("the server is not ready")?;
        Ok(took)
    }

    /// Lets it finish what it began, and end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.served.stop().await
    }
}
