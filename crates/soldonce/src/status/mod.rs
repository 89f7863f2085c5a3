//! `soldonce status` and `soldonce top`: the state of servers, by their own readiness and metrics.
#![expect(
    clippy::float_arithmetic,
    reason = "figures for people, of which nothing is decided"
)]

mod figures;
mod scrape;
#[cfg(test)]
mod tests;
mod top;

use clap::Args;
use comfy_table::{Table, presets};
use hyper::Method;
use serde::Serialize;
use serde_json::Value;
use soldonce_server::{Client, ClientError};
use tokio::task::JoinSet;

use self::figures::{Figures, Rates};
use self::scrape::Scrape;
use crate::block_on;
use crate::exit::{Exit, usage};
use crate::output::report;

pub(crate) use self::top::{TopArgs, run as top};

/// The row of all servers together.
const ALL: &str = "all";

/// The servers.
#[derive(Debug, Args)]
struct Servers {
    /// A server, as http://HOST:PORT or https://HOST:PORT; repeat it for several. With --admin-listen, that address
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Vec<String>,
}

/// Arguments of `soldonce status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce status
  soldonce status --url http://10.0.0.4:8081 --url http://10.0.0.5:8081 --json

Counts are since the start of each server; times are of half of all requests, and of all but one of a hundred.
Exit code 1 when a server does not take commands.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    servers: Servers,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A server at one moment.
#[derive(Clone, Debug)]
struct Look {
    server: String,
    state: State,
    /// None if it did not answer.
    scrape: Option<Scrape>,
}

/// How a server answers, each state worse than the one before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
enum State {
    Ready,
    /// It answers, and takes no commands: its code of the refusal.
    Refusing(String),
    Unreachable(String),
}

/// What is printed of a server.
#[derive(Clone, Debug, Serialize)]
struct Report {
    server: String,
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    figures: Option<Figures>,
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<Exit> {
    let clients = args.servers.clients()?;
    let looks = block_on(look(&clients))?;
    let reports = reports(&[], &looks, 1.0);
    let mut told = serde_json::to_value(&reports)?;
    round(&mut told);
    report(args.json, &told, || format!("{}\n", table(&reports)))?;
    Ok(Exit::done_if(worst(&looks) == State::Ready))
}

impl Servers {
    fn clients(&self) -> anyhow::Result<Vec<(String, Client)>> {
        let client = |url: &String| {
            let client = Client::new(url, "").map_err(|wrong| usage(wrong.into()))?;
            Ok((url.clone(), client))
        };
        self.url.iter().map(client).collect()
    }
}

/// Asks all servers at once; the answers are in their order.
async fn look(clients: &[(String, Client)]) -> Vec<Look> {
    let mut asked = JoinSet::new();
    for (at, (server, client)) in clients.iter().cloned().enumerate() {
        asked.spawn(async move { (at, look_at(server, &client).await) });
    }
    let mut looks = asked.join_all().await;
    looks.sort_by_key(|(at, _)| *at);
    looks.into_iter().map(|(_, look)| look).collect()
}

async fn look_at(server: String, client: &Client) -> Look {
    let (state, scrape) = match ask(client).await {
        Ok((state, scrape)) => (state, Some(scrape)),
        Err(error) => {
            let why = anyhow::Error::from(error);
            (State::Unreachable(format!("{why:#}")), None)
        }
    };
    Look {
        server,
        state,
        scrape,
    }
}

async fn ask(client: &Client) -> Result<(State, Scrape), ClientError> {
    let ready = client.send(Method::GET, "/readyz", None).await?;
    let metrics = client.text("/metrics").await?;
    let state = if ready.status.is_success() {
        State::Ready
    } else {
        let code = ready.body.get("code").and_then(|code| code.as_str());
        State::Refusing(code.unwrap_or("no code").to_owned())
    };
    Ok((state, Scrape::read(&metrics)))
}

/// Reports each server, and the sum of several. Without earlier looks counts are totals since the
/// start of a server, else per second since those looks: then a server that was silent in one of
/// the two looks has no counts, and none in the sum.
fn reports(before: &[Look], after: &[Look], seconds: f64) -> Vec<Report> {
    let risen = |(at, look): (usize, &Look)| {
        let now = look.scrape.as_ref()?;
        match before.get(at) {
            Some(before) => Some(now.since(before.scrape.as_ref()?)),
            None => Some(now.clone()),
        }
    };
    let risen: Vec<Option<Scrape>> = after.iter().enumerate().map(risen).collect();
    let figures = |now: &Scrape, risen: Option<&Scrape>| {
        Figures::of(now, risen.map(|risen| Rates::of(risen, seconds)))
    };
    let of_one = |(look, risen): (&Look, Option<&Scrape>)| Report {
        server: look.server.clone(),
        state: look.state.clone(),
        figures: look.scrape.as_ref().map(|now| figures(now, risen)),
    };
    let each = after.iter().zip(risen.iter().map(Option::as_ref));
    let mut reports: Vec<Report> = each.map(of_one).collect();
    if let [_, _, ..] = after {
        let now = together(after.iter().filter_map(|look| look.scrape.as_ref()));
        let risen = together(risen.iter().flatten());
        reports.push(Report {
            server: ALL.to_owned(),
            state: worst(after),
            figures: now.map(|now| figures(&now, risen.as_ref())),
        });
    }
    reports
}

/// Writes counts as whole numbers, and all others with three digits behind the point.
fn round(told: &mut Value) {
    match told {
        Value::Number(number) => {
            let text = format!("{:.3}", number.as_f64().unwrap_or_default());
            let short = text.trim_end_matches('0').trim_end_matches('.');
            if let Ok(short) = short.parse() {
                *number = short;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(round),
        Value::Object(members) => members.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Merges the metrics of several servers; None if no server answered.
fn together<'a>(scrapes: impl Iterator<Item = &'a Scrape>) -> Option<Scrape> {
    scrapes.cloned().reduce(|mut all, one| {
        all.add(&one);
        all
    })
}

fn worst(looks: &[Look]) -> State {
    let states = looks.iter().map(|look| &look.state);
    states.max().cloned().unwrap_or(State::Ready)
}

/// Draws a row for each server, and below them why one was not reached.
fn table(reports: &[Report]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "server",
        "state",
        "sold",
        "held",
        "refused",
        "hold ms",
        "commit ms",
        "a commit",
        "holds",
        "lag s",
        "connections",
        "money open/stuck",
        "500",
    ]);
    for report in reports {
        let mut row = vec![report.server.clone(), report.state.words()];
        row.extend(report.figures.iter().flat_map(cells));
        table.add_row(row);
    }
    let mut lines = vec![table.to_string()];
    for report in reports.iter().filter(|report| report.server != ALL) {
        if let State::Unreachable(why) = &report.state {
            lines.push(format!("{}: {why}", report.server));
        }
    }
    lines.join("\n")
}

fn cells(figures: &Figures) -> [String; 11] {
    let money = figures.money;
    let rate = |shown: fn(&Rates) -> String| figures.rates.as_ref().map(shown).unwrap_or_default();
    [
        rate(|rates| format!("{:.0}", rates.sold)),
        rate(|rates| format!("{:.0}", rates.held)),
        rate(|rates| format!("{:.0}", rates.refused)),
        rate(|rates| rates.hold_ms.shown()),
        rate(|rates| rates.commit_ms.shown()),
        rate(|rates| format!("{:.1}", rates.commands_a_commit)),
        format!("{:.0}", figures.holds_live),
        format!("{:.1}", figures.feed_lag_seconds),
        format!("{:.0}", figures.connections),
        format!(
            "{:.0}/{:.0}",
            money.pending,
            money.stuck.max(money.unreconciled)
        ),
        rate(|rates| format!("{:.0}", rates.defects)),
    ]
}

impl State {
    fn words(&self) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::Refusing(code) => code.clone(),
            Self::Unreachable(_) => "unreachable".to_owned(),
        }
    }
}
