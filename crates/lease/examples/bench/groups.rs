//! Groups of 1, 4 and 16 names in one step, beside as many single leases one after the other.

use std::error::Error;

use soldonce_lease::{Clock, Lease, Leases, SystemClock};
use tokio::task::JoinSet;

use super::Setting;
use super::peers::{Peers, TTL};
use super::table::{columns, median, permille, thousandths};

const SIZES: [usize; 3] = [1, 4, 16];
const TASKS: usize = 8;

#[derive(Clone, Copy)]
enum Form {
    Group,
    Singles,
}

pub(crate) async fn measure(setting: &Setting) -> Result<String, Box<dyn Error>> {
    let peers = Peers::connect(&setting.url).await?;
    let heads = ["groups/s", "as single leases/s", "group / singles"];
    let mut head = vec![format!("all names or none, {TASKS} tasks")];
    head.extend(heads.map(str::to_owned));
    let mut rows = vec![head];
    for size in SIZES {
        let (mut groups, mut singles, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setting.runs {
            let group = per_s(&peers.locks, setting, (Form::Group, size)).await?;
            let single = per_s(&peers.locks, setting, (Form::Singles, size)).await?;
            ratios.push(permille(group, single));
            groups.push(group);
            singles.push(single);
        }
        rows.push(vec![
            format!("{size} names"),
            median(groups).to_string(),
            median(singles).to_string(),
            thousandths(median(ratios)),
        ]);
    }
    Ok(columns(&rows))
}

async fn per_s(
    locks: &Leases,
    setting: &Setting,
    (form, size): (Form, usize),
) -> Result<u64, Box<dyn Error>> {
    let begun = SystemClock.boot();
    let end = begun.plus(setting.span);
    let mut all = JoinSet::new();
    for task in 0..TASKS {
        let locks = locks.clone();
        all.spawn(async move {
            let mut rounds = 0_u64;
            while SystemClock.boot() < end {
                take_and_release(&locks, form, (task, size)).await;
                rounds += 1;
            }
            rounds
        });
    }
    let mut rounds = 0;
    while let Some(done) = all.join_next().await {
        rounds += done?;
    }
    let took = u64::try_from(SystemClock.boot().since(begun).as_micros())?;
    Ok(rounds.saturating_mul(1_000_000) / took.max(1))
}

async fn take_and_release(locks: &Leases, form: Form, which: (usize, usize)) {
    for lease in take(locks, form, which).await {
        lease.release().await.unwrap();
    }
}

async fn take(locks: &Leases, form: Form, (task, size): (usize, usize)) -> Vec<Lease> {
    let names = (0..size).map(|n| format!("seat-{task}-{n}"));
    match form {
        Form::Group => {
            let group = locks.group(format!("hall-{task}"), names);
            vec![group.ttl(TTL).try_acquire().await.unwrap().unwrap()]
        }
        Form::Singles => {
            let mut leases = Vec::with_capacity(size);
            for name in names {
                leases.push(
                    locks
                        .lease(name)
                        .ttl(TTL)
                        .try_acquire()
                        .await
                        .unwrap()
                        .unwrap(),
                );
            }
            leases
        }
    }
}
