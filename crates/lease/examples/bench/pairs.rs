//! Lock and unlock, over and over, each task its own name: pairs a second and time per pair.

use std::error::Error;

use soldonce_lease::{Clock, SystemClock};
use tokio::task::JoinSet;

use super::Setting;
use super::peers::{Peer, Peers};
use super::table::{columns, median, permille, thousandths};

const TASKS: [usize; 2] = [1, 64];

pub(crate) async fn measure(setting: &Setting) -> Result<String, Box<dyn Error>> {
    let peers = Peers::connect(&setting.url).await?;
    let mut text = String::new();
    for tasks in TASKS {
        let mut rates = vec![Vec::new(); Peer::ALL.len()];
        // Each run measures all of them, so that noise of the machine meets each of them.
        for _ in 0..setting.runs {
            for (peer, rates) in Peer::ALL.into_iter().zip(&mut rates) {
                rates.push(pairs_per_s(&peers, peer, tasks, setting).await?);
            }
        }
        text.push_str(&report(tasks, &rates));
        text.push('\n');
    }
    Ok(text)
}

async fn pairs_per_s(
    peers: &Peers,
    peer: Peer,
    tasks: usize,
    setting: &Setting,
) -> Result<u64, Box<dyn Error>> {
    let clock = SystemClock;
    let begun = clock.boot();
    let end = begun.plus(setting.span);
    let mut all = JoinSet::new();
    for task in 0..tasks {
        let mut peers = peers.clone();
        all.spawn(async move {
            let mut pairs = 0_u64;
            while SystemClock.boot() < end {
                peers.pair(peer, task).await;
                pairs += 1;
            }
            pairs
        });
    }
    let mut pairs = 0;
    while let Some(done) = all.join_next().await {
        pairs += done?;
    }
    let took = u64::try_from(clock.boot().since(begun).as_micros())?;
    Ok(pairs.saturating_mul(1_000_000) / took.max(1))
}

fn report(tasks: usize, rates: &[Vec<u64>]) -> String {
    let against = |peer: Peer, of: &[u64]| {
        let whole = Peer::ALL.iter().position(|other| *other == peer);
        let whole = whole.and_then(|at| rates.get(at));
        let each = of.iter().zip(whole.into_iter().flatten());
        thousandths(median(
            each.map(|(part, whole)| permille(*part, *whole)).collect(),
        ))
    };
    let title = format!("P9: lock and unlock, {tasks} tasks");
    let heads = [
        "pairs/s", "us/pair", "/ bare", "/ script", "/ thread", "/ rslock",
    ];
    let mut rows = vec![vec![title]];
    if let Some(row) = rows.first_mut() {
        row.extend(heads.map(str::to_owned));
    }
    let tasks = u64::try_from(tasks).unwrap_or(1);
    for (peer, each) in Peer::ALL.iter().zip(rates) {
        let rate = median(each.clone());
        rows.push(vec![
            peer.name().to_owned(),
            rate.to_string(),
            (tasks * 1_000_000 / rate.max(1)).to_string(),
            against(Peer::Bare, each),
            against(Peer::Scripts, each),
            against(Peer::ScriptsElsewhere, each),
            against(Peer::Rslock, each),
        ]);
    }
    columns(&rows)
}
