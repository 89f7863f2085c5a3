//! The product under test: `soldonce serve` in a process of its own, its keys and its events.

use std::net::SocketAddr;

use anyhow::Context;
use axum::http::Method;
use serde_json::{Value, json};
use soldonce_server::Client;
use tokio::process::Command;

use super::ledger::Ledger;
use crate::kit::{ANY_PORT, Served, admin_key, product};
use crate::limits::LOAD_CONNECTIONS_MAX;
use crate::load::Transport;

/// The server of a scenario under test, and the load to come.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) address: SocketAddr,
    /// What the load is sent as.
    pub(super) transport: Transport,
    pub(super) admin: Client,
    pub(super) key: String,
    /// The most requests that may come, warm-up included.
    pub(super) requests_max: u64,
}

/// `soldonce serve`, and how to reach it.
pub(super) struct Product {
    pub(super) served: Served,
    pub(super) setting: Setting,
}

impl Product {
    pub(super) async fn start(ledger: &Ledger) -> anyhow::Result<Self> {
        let key = admin_key();
        Self::start_as(product(ANY_PORT, &key)?.args(ledger.arguments()), &key).await
    }

    /// Starts it at this address, with limits for so many viewers from one network address.
    pub(super) async fn start_for(
        viewers: u32,
        address: SocketAddr,
        ledger: &Ledger,
    ) -> anyhow::Result<Self> {
        let key = admin_key();
        let connections = (viewers + LOAD_CONNECTIONS_MAX).to_string();
        let mut command = product(address, &key)?;
        command
            .args(["--limit-connections", &connections, "--limit-peer", "off"])
            .args(["--limit-streams", "off", "--limit-reads", "off"]);
        Self::start_as(command.args(ledger.arguments()), &key).await
    }

    async fn start_as(command: &mut Command, key: &str) -> anyhow::Result<Self> {
        let served = Served::start(command).await?;
        let admin = Client::new(&format!("http://{}", served.address), key)?;
        let setting = Setting {
            address: served.address,
            transport: Transport::default(),
            key: sell_key(&admin).await?,
            admin,
            requests_max: 0,
        };
        Ok(Self { served, setting })
    }
}

async fn sell_key(admin: &Client) -> anyhow::Result<String> {
    let body = json!({ "name": "bench", "scopes": ["sell"] });
    let made = admin.send(Method::POST, "/v1/keys", Some(&body)).await?;
    let made = made.into_success()?;
    let key = made.get("key").and_then(Value::as_str);
    Ok(key.context("the server made no key")?.to_owned())
}

/// Makes an event with a grid of seats whose holds outlast the benchmark.
pub(super) async fn make_event(
    admin: &Client,
    id: &str,
    (rows, seats_per_row): (u64, u64),
) -> anyhow::Result<()> {
    let body = json!({
        "id": id, "name": "Bench", "currency": "EUR",
        "chart": {
            "format": "grid", "rows": rows, "seats_per_row": seats_per_row, "category": "Standard",
        },
        "prices": { "Standard": 4_500 },
        "policy": {
            "hold_ttl_ms": 7_200_000, "hold_max_ms": 14_400_000,
            "units_per_hold_max": 64, "units_per_holder_max": 64,
        },
    });
    let made = admin.send(Method::POST, "/v1/events", Some(&body)).await?;
    made.into_success()?;
    Ok(())
}

/// Makes a hold of these seats, so that a load finds them held.
pub(super) async fn hold_seats(
    admin: &Client,
    event: &str,
    seats: &[String],
) -> anyhow::Result<()> {
    let units: Vec<_> = seats.iter().map(|seat| json!({ "seat": seat })).collect();
    let body = json!({ "holder": "first", "units": units });
    let path = format!("/v1/events/{event}/holds");
    let held = admin.send(Method::POST, &path, Some(&body)).await?;
    held.into_success()?;
    Ok(())
}
