//! An event, its wanted seats, and the tokens of the users who want them.

use std::time::Duration;

use anyhow::Context;
use axum::http::Method;
use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};
use soldonce_server::Client;

use crate::kit::random_name;

/// Lifetime of a hold, longer than any storm: what is won stays won.
const HOLD_MS: u64 = 2 * 60 * 60 * 1_000;

/// Longest delay of the published snapshot: one that is still older is wrong.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// An event of a storm.
pub(super) struct Fixture {
    client: Client,
    pub(super) event: String,
    pub(super) seats: Vec<String>,
    pub(super) users: Users,
    /// How long a hold of it lives, milliseconds.
    pub(super) hold_ms: u64,
}

/// The users who want the seats.
pub(super) enum Users {
    /// Holders that a key names, another with each request.
    Holders(String),
    Sessions(Vec<String>),
}

impl Fixture {
    /// Makes an event for the storm with an admin key.
    pub(super) async fn make(client: Client, key: &str, seats: u32) -> anyhow::Result<Self> {
        let event = format!("storm-{}", random_name());
        let seats: Vec<String> = (1..=seats).map(|seat| format!("A-{seat}")).collect();
        let body = json!({
            "id": event, "name": "Storm", "currency": "EUR",
            "chart": {
                "format": "grid", "rows": 1, "seats_per_row": seats.len(), "category": "Standard",
            },
            "prices": { "Standard": 4_500 },
            "policy": { "hold_ttl_ms": HOLD_MS, "hold_max_ms": HOLD_MS, "listed": false },
        });
        let made = client.send(Method::POST, "/v1/events", Some(&body)).await?;
        made.into_success().context("no event could be made")?;
        Ok(Self {
            client,
            event,
            seats,
            users: Users::Holders(key.to_owned()),
            hold_ms: HOLD_MS,
        })
    }

    /// Finds the first event with so many free seats, and opens a session for each user.
    pub(super) async fn find(client: Client, users: u32, seats: u32) -> anyhow::Result<Self> {
        let mut sessions = Vec::new();
        for _ in 0..users {
            let opened = client.send(Method::POST, "/v1/sessions", None).await?;
            let opened = opened.into_success().context(
                "no session: give --admin-key, or ask a server with --shoppers open and a larger \
                 --limit-sessions",
            )?;
            sessions.push(text(&opened, "session")?);
        }
        let client = client.with_key(sessions.first().context("a storm has users")?);
        let events = get(&client, "/v1/events").await?;
        for listed in list(&events, "events") {
            let event = text(listed, "id")?;
            let free = free_seats(&client, &event).await?;
            if let Some(wanted) = free.get(..usize::try_from(seats)?) {
                let hold_ms = listed.pointer("/policy/hold_ttl_ms");
                let hold_ms = hold_ms.and_then(Value::as_u64);
                return Ok(Self {
                    hold_ms: hold_ms.context("an event without hold_ttl_ms")?,
                    client,
                    event,
                    seats: wanted.to_vec(),
                    users: Users::Sessions(sessions),
                });
            }
        }
        anyhow::bail!("no event has {seats} free seats: give --admin-key, and one is made")
    }

    /// Returns [`Fixture::held`] once it is as many as were won or could be, or after a time-out: the
    /// published snapshot follows the commits with a delay.
    pub(super) async fn held_in_the_end(&self, winners: u64) -> anyhow::Result<u64> {
        let expected = match self.users {
            Users::Holders(_) => winners.min(u64::try_from(self.seats.len())?),
            // In another event a hold may have ended.
            Users::Sessions(_) => 0,
        };
        let end = SystemClock.boot().plus(SHOWN_WITHIN);
        loop {
            let held = self.held().await?;
            let now = SystemClock.boot();
            if held >= expected || now >= end {
                return Ok(held);
            }
            SystemClock.sleep_until(now.plus(LOOK_EVERY)).await;
        }
    }

    /// Counts the wanted seats that the published snapshot shows as held.
    pub(super) async fn held(&self) -> anyhow::Result<u64> {
        let seats = get(&self.client, &format!("/v1/events/{}/seats", self.event)).await?;
        let held = list(&seats, "held").iter().filter_map(Value::as_str);
        let wanted = held.filter(|seat| self.seats.iter().any(|wanted| wanted == seat));
        Ok(u64::try_from(wanted.count())?)
    }

    /// Releases the holds: the storm's own event is cancelled, which ends them; elsewhere each session
    /// releases its own.
    pub(super) async fn give_back(&self) -> anyhow::Result<()> {
        match &self.users {
            Users::Holders(_) => self.cancel().await,
            Users::Sessions(sessions) => self.release(sessions).await,
        }
        .context("what was won is not given back")
    }

    async fn cancel(&self) -> anyhow::Result<()> {
        let path = format!("/v1/events/{}/cancel", self.event);
        let body = json!({ "reason": "the storm is over" });
        let cancelled = self.client.send(Method::POST, &path, Some(&body)).await?;
        cancelled.into_success()?;
        Ok(())
    }

    async fn release(&self, sessions: &[String]) -> anyhow::Result<()> {
        for session in sessions {
            let client = self.client.with_key(session);
            let own = get(&client, "/v1/holds").await?;
            for hold in list(&own, "holds") {
                let path = format!("/v1/holds/{}", text(hold, "id")?);
                // A session that has no command left is refused: its hold ends by its time.
                client.send(Method::DELETE, &path, None).await?;
            }
        }
        Ok(())
    }
}

async fn get(client: &Client, path: &str) -> anyhow::Result<Value> {
    let answer = client.send(Method::GET, path, None).await?;
    Ok(answer.into_success()?)
}

/// Reads the free seats of an event, in the order of its chart.
async fn free_seats(client: &Client, event: &str) -> anyhow::Result<Vec<String>> {
    let taken = get(client, &format!("/v1/events/{event}/seats")).await?;
    let is_taken = |seat: &str| {
        let states = ["held", "sold", "blocked"].into_iter();
        let mut taken = states.flat_map(|state| list(&taken, state));
        taken.any(|taken| taken == seat)
    };
    let chart = get(client, &format!("/v1/events/{event}/chart")).await?;
    let rows = list(&chart, "zones").iter();
    let rows = rows.flat_map(|zone| list(zone, "rows"));
    let seats = rows.flat_map(|row| list(row, "seats"));
    let ids = seats.filter_map(|seat| text(seat, "seat").ok());
    Ok(ids.filter(|seat| !is_taken(seat)).collect())
}

/// Returns the list under a name; empty if there is none.
fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    let parts = body.get(name).and_then(Value::as_array);
    parts.map_or(&[], Vec::as_slice)
}

fn text(body: &Value, name: &str) -> anyhow::Result<String> {
    let text = body.get(name).and_then(Value::as_str);
    let text = text.with_context(|| format!("an answer without {name}"))?;
    Ok(text.to_owned())
}
