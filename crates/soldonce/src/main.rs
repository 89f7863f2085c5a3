//! The `soldonce` binary: one file per subcommand, each with its arguments and a `run`.

#![expect(
    clippy::print_stdout,
    reason = "a command line tool prints its reports"
)]
#![expect(clippy::print_stderr, reason = "and its errors")]

mod backup;
mod chart;
mod clear_text;
mod clock;
mod demo;
mod doctor;
mod env;
mod events;
mod exit;
mod init;
mod keys;
mod lab;
mod lease;
mod limits;
mod migrate;
mod output;
mod reconcile;
mod serve;
mod status;
mod target;
mod verify;
mod why;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::{Exit, code_of};
use crate::output::print;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Hold scarce things for a moment; sell each of them once.
#[derive(Debug, Parser)]
#[command(name = "soldonce", version = version(), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A hall on an embedded ledger and an open seat map; try it in two windows
    Demo(demo::DemoArgs),
    /// The server
    Serve(Box<serve::ServeArgs>),
    /// Brings a ledger's schema up to date
    Migrate(migrate::MigrateArgs),
    /// The ledger's clock, where it is ahead of the machine's
    Clock(clock::ClockArgs),
    /// How servers are: what they sold and refused, how fast, and what is left to do
    Status(status::StatusArgs),
    /// What `status` shows, each second anew
    Top(status::TopArgs),
    /// Checks a ledger against itself, live or stopped
    Verify(verify::VerifyArgs),
    /// Copies the embedded ledger while its server works
    Backup(backup::BackupArgs),
    /// Puts a copy of the embedded ledger back, and says what is lost
    Restore(backup::RestoreArgs),
    /// Compares bookings with the payment provider, and settles what differs
    Reconcile(reconcile::ReconcileArgs),
    /// Tells everything that happened to one unit
    Why(why::WhyArgs),
    /// Prints the OpenAPI document
    #[command(after_help = "Example:
  soldonce openapi > openapi.json")]
    Openapi,
    /// API keys: make, list, revoke
    Keys(keys::KeysArgs),
    /// Events: list, create, cancel, drop
    Events(events::EventsArgs),
    /// Looks at the machine, the data folder or the database, the shield and the leases, and says what would hurt
    Doctor(doctor::DoctorArgs),
    /// Seat plans
    Chart(chart::ChartArgs),
    /// Timed exclusive claims on names
    Lease(lease::LeaseArgs),
    /// Writes a settings file with every setting, a unit for systemd and a compose file
    Init(init::InitArgs),
    /// Prints what lets a shell complete commands and options
    Completions(init::CompletionsArgs),
    /// Writes the pages of the manual
    Man(init::ManArgs),
    /// Measures and proves: benchmarks, races, storms (the program `soldonce-lab`)
    Lab(lab::LabArgs),
}

/// Returns the version and, where `build.rs` could tell, its build: `0.1.0 (1a2b3c4 2026-11-24)`.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let number = env!("CARGO_PKG_VERSION");
        match option_env!("SOLDONCE_BUILD").filter(|build| !build.is_empty()) {
            Some(build) => format!("{number} ({build})"),
            None => number.to_owned(),
        }
    });
    &VERSION
}

/// Runs work that waits for a server on one thread, for a command that does nothing else.
fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build()?.block_on(work))
}

fn main() -> ExitCode {
    let given = env::without_empty(Cli::command()).get_matches();
    env::note_flags(&given);
    let given = Cli::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    let done: anyhow::Result<Exit> = match given.command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Chart(args) => chart::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Completions(args) => init::completions(&args),
        Command::Init(args) => init::run(&args),
        Command::Man(args) => init::man(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Reconcile(args) => reconcile::run(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => status::top(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Openapi => print(&soldonce_server::openapi()).map(|()| Exit::Done),
        Command::Lab(args) => lab::run(&args),
        Command::Lease(args) => lease::run(&args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("soldonce: {error:#}");
            ExitCode::from(code_of(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the help of each command that is typed has a line that begins with it.
    fn assert_shown(command: &clap::Command, path: &str) {
        for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            assert_shown(below, &format!("{path} {}", below.get_name()));
        }
        // What `lab` takes is another program's.
        if command.has_subcommands() || path == "soldonce lab" {
            return;
        }
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let lines = help.lines().map(str::trim_start);
        let mut lines = lines.map(|line| line.trim_start_matches("SOLDONCE_ADMIN_KEY=sk_.. "));
        assert!(lines.any(|line| line.starts_with(path)), "{path}: {help}");
    }

    #[test]
    fn the_help_of_each_command_has_an_example() {
        assert_shown(&Cli::command(), "soldonce");
    }
}
