//! `soldonce lease`: `run` runs a command only while a lease is held, and ends it before the lease
//! ends (`lease.md` 9); `inspect` and `break` are for operators.

mod args;
pub(crate) mod backend;
mod child;
mod guard;
mod holder;
mod outcome;
mod report;
mod run;
mod signals;
pub(crate) mod span;
mod status;
mod supervise;
mod terminal;

#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

pub(crate) use signals::is_ignored;
pub(crate) use span::span;

use crate::exit::Exit;

/// Arguments of `soldonce lease`.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    #[command(subcommand)]
    command: LeaseCommand,
}

#[derive(Debug, Subcommand)]
enum LeaseCommand {
    /// Runs CMD only while holding the lease NAME, and ends it before the lease ends
    #[command(
        after_help = "Exit codes: those of CMD; else 110 refused or wait timed out, \
        111 unknown, 112 lease lost (CMD was ended), 113 backend or configuration, 2 usage, \
        126 CMD cannot run, 127 CMD not found, 128+n CMD or this command ended by signal n.

Examples:
  soldonce lease run nightly --redis-url redis://10.0.0.5 -- ./report.sh
  soldonce lease run nightly --database-url postgres://app@db/app --at-least 1m -- ./report.sh
  soldonce lease run nightly --redis-url redis://10.0.0.5 --epochs /var/lib/app/epochs -- ./report.sh
  soldonce lease run nightly --redis-url redis://a --redis-url redis://b --redis-url redis://c \\
      --database-url postgres://app@db/app -- ./report.sh

Backends: one Redis, redis+cluster://HOST:PORT,HOST:PORT, --redis-url given 3, 5 or 7 times (a
majority decides; in SOLDONCE_REDIS_URL spaces separate them), or PostgreSQL, whose tables are made when they are missing. Beside Redis,
--database-url or --epochs anchors the tokens: they rise though Redis loses data and clocks are wrong. A single Redis
that lost its data (a restart without appendfsync always, FLUSHALL) grants at once, and the holder
before learns it at its next renewal, within a third of its ttl.

Processes: CMD is the leader of a process group of its own. When CMD ends, or when this command is
killed, what is left of the group is killed; what has left the group (setsid, a daemon) is not.
Signals are passed on to the group; those ignored at the start stay ignored. In a terminal CMD has the
foreground. Ctrl-Z stops both, and the lease is not renewed meanwhile: CMD goes on only if it is still
held, and is ended otherwise."
    )]
    Run(Box<args::RunArgs>),
    /// Tells who holds the lease NAME
    #[command(
        after_help = "Exit codes: 0 held, 1 no process holds it, 2 usage, 3 the backend does not answer.

Examples:
  soldonce lease inspect nightly --redis-url redis://10.0.0.5
  soldonce lease inspect A-1 --group hall --database-url postgres://app@db/app --json"
    )]
    Inspect(Box<holder::InspectArgs>),
    /// Ends another's grant of the lease NAME, if its token is still the one given
    #[command(
        after_help = "Exit codes: 0 ended, 1 nothing was done (no grant, or a later one, holds it), 2 usage,
3 the backend does not answer: it may have been ended.

The holder learns it at its next renewal, and may write until then: break a lease only when its
holder is known to be gone, or when the target of its writes compares tokens.

Example:
  soldonce lease break nightly --token 0000004294967297 --why 'db-1 is gone' \\
      --redis-url redis://10.0.0.5"
    )]
    Break(Box<holder::BreakArgs>),
    /// Becomes CMD, and dies with the process that started this
    #[command(hide = true)]
    Become(child::BecomeArgs),
    /// Kills the process group that is written to it when its pipe is closed
    #[command(hide = true)]
    Guard,
}

pub(crate) fn run(args: &LeaseArgs) -> anyhow::Result<Exit> {
    match &args.command {
        LeaseCommand::Run(args) => run::run(args),
        LeaseCommand::Inspect(args) => holder::inspect(args),
        LeaseCommand::Break(args) => holder::break_lease(args),
        LeaseCommand::Become(args) => Ok(child::become_command(args)),
        LeaseCommand::Guard => guard::guard(),
    }
}
