//! Compares locks on one Redis as programs of other languages and makers have them: this crate, rslock,
//! redis-py's lock and node-redlock, each with its own defaults, in processes of its own.
//!
//! `cargo run --release -p soldonce-lease --features redis --example compare -- [--seconds 1] [--runs 5]
//! [--write]`
//!
//! It starts private servers and processes, and fetches what is missing (Node.js, the packages). Prints
//! a table of Markdown; with `--write` the table takes its place in README.md. Compare only what one
//! run prints: the machine's own speed drifts.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it reports to a person"
)]

mod figures;
mod holder;
mod serve;
mod trials;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use holder::{Interpreters, Peer};
use trials::{Fault, Verdict};

const BEGIN: &str = "<!-- comparison -->\n";
const END: &str = "<!-- end of the comparison -->";

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
struct Setting {
    seconds: u64,
    runs: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut setting = Setting {
        seconds: 1,
        runs: 5,
    };
    let mut writes = false;
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{option} needs a value"));
        match option.as_str() {
            "--hold" => return hold(&value()?, &value()?),
            "--seconds" => setting.seconds = value()?.parse()?,
            "--runs" => setting.runs = value()?.parse()?,
            "--write" => writes = true,
            _ => {
                return Err(
                    format!("no option {option}; there are --seconds, --runs and --write").into(),
                );
            }
        }
    }
    let table = measure(setting)?;
    println!("{table}");
    if writes { write(&table) } else { Ok(()) }
}

/// The process of a holder in Rust.
fn hold(name: &str, url: &str) -> Result<(), Box<dyn Error>> {
    let peer = Peer::ALL.into_iter().find(|peer| peer.name() == name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve::serve(peer.ok_or("no such peer")?, url));
    served.map_err(|error| error.to_string().into())
}

fn measure(setting: Setting) -> Result<String, Box<dyn Error>> {
    let with = Interpreters::provide()?;
    let mut rows = figures::rows(setting, &with)?;
    for fault in Fault::ALL {
        eprintln!("   {}", fault.name());
        let mut cells = Vec::new();
        for peer in Peer::ALL {
            let verdicts: Result<Vec<_>, _> = (0..setting.runs)
                .map(|_| trials::run(peer, fault, &with))
                .collect();
            cells.push(
                verdicts
                    .map_err(|error| format!("{} when {}: {error}", peer.name(), fault.name()))?,
            );
        }
        rows.extend(fault_rows(fault, &cells));
    }
    let mut table = String::from("| |");
    for peer in Peer::ALL {
        write!(table, " {} |", peer.name())?;
    }
    write!(table, "\n|---|{}", "---|".repeat(Peer::ALL.len()))?;
    for row in rows {
        write!(table, "\n| {} |", row.join(" | "))?;
    }
    table.push('\n');
    Ok(table)
}

fn fault_rows(fault: Fault, cells: &[Vec<Verdict>]) -> Vec<Vec<String>> {
    let row = |head: String, cell: &dyn Fn(&[Verdict]) -> String| {
        std::iter::once(head)
            .chain(cells.iter().map(|verdicts| cell(verdicts)))
            .collect()
    };
    let times = |verdicts: &[Verdict], what: fn(&Verdict) -> bool| {
        let count = verdicts.iter().filter(|verdict| what(verdict)).count();
        format!("{count} of {}", verdicts.len())
    };
    let mut rows = vec![row(
        format!("{}: the next one after, ms", fault.name()),
        &|verdicts| {
            let mut spans: Vec<_> = verdicts.iter().map(|verdict| verdict.next_after).collect();
            let ms = figures::median(&mut spans).as_millis();
            figures::grouped(u64::try_from(ms).unwrap_or(u64::MAX))
        },
    )];
    if fault != Fault::Killed {
        rows.push(row(
            "then two believed to have it".to_owned(),
            &|verdicts| times(verdicts, |verdict| verdict.believers > 1),
        ));
        rows.push(row("**then it was sold twice**".to_owned(), &|verdicts| {
            times(verdicts, |verdict| verdict.sales > 1)
        }));
    }
    rows
}

/// Puts the table in its place in the README.
fn write(table: &str) -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&file)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or("the README has no place for the table")?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("the place for the table has no end")?;
    Ok(fs::write(
        file,
        format!("{before}{BEGIN}{table}{END}{after}"),
    )?)
}
