//! `soldonce top`: the figures of servers, refreshed each second.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use soldonce_clock::{Clock, SystemClock};

use super::{Look, Servers, look, reports, table};
use crate::block_on;
use crate::exit::Exit;
use crate::lease::span::span;
use crate::output::print;

/// Switches a terminal to its alternate screen, and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor, and switches back to the main screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves the cursor to the upper left.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line and begins the next.
const END_OF_LINE: &str = "\x1b[K\n";
/// Clears what is below.
const REST: &str = "\x1b[J";

/// Arguments of `soldonce top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce top
  soldonce top --url http://10.0.0.4:8081 --url http://10.0.0.5:8081 --every 5s

Counts are of each second since the look before, and blank for a server that was silent then. Ctrl-C ends it.
Without a terminal each look is printed below the one before.")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    servers: Servers,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    every: Duration,
    /// Ends after so many looks
    #[arg(long, value_name = "LOOKS")]
    count: Option<u64>,
}

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Exit> {
    let screen = std::io::stdout().is_terminal();
    if screen {
        print(ENTER)?;
    }
    let watched = block_on(async {
        tokio::select! {
            watched = watch(args) => watched,
            ended = tokio::signal::ctrl_c() => ended.map_err(anyhow::Error::from),
        }
    });
    if screen {
        print(LEAVE)?;
    }
    watched??;
    Ok(Exit::Done)
}

async fn watch(args: &TopArgs) -> anyhow::Result<()> {
    let screen = std::io::stdout().is_terminal();
    let clients = args.servers.clients()?;
    let clock = SystemClock;
    let mut before: (_, Vec<Look>) = (clock.boot(), look(&clients).await);
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        clock.sleep_until(before.0.plus(args.every)).await;
        let now = (clock.boot(), look(&clients).await);
        let seconds = now.0.since(before.0).as_secs_f64();
        let shown = table(&reports(&before.1, &now.1, seconds));
        if screen {
            let lines = shown.lines().flat_map(|line| [line, END_OF_LINE]);
            print(&format!("{HOME}{}{REST}", lines.collect::<String>()))?;
        } else {
            print(&format!("{shown}\n"))?;
        }
        before = now;
    }
    Ok(())
}
