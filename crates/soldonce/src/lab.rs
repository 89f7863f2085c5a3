//! `soldonce lab`: runs `soldonce-lab`, a program of its own, so that a server carries no benchmarks.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{anyhow, bail};
use clap::Args;

use crate::exit::Exit;

const PROGRAM: &str = "soldonce-lab";

/// Arguments of `soldonce lab`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LabArgs {
    /// What soldonce-lab is to do; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Replaces this process by `soldonce-lab`: that in the folder of this program, else on PATH.
pub(crate) fn run(args: &LabArgs) -> anyhow::Result<Exit> {
    let program = next_to_this_one().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(&args.args).exec();
    if error.kind() != ErrorKind::NotFound {
        return Err(anyhow!(error).context(format!("cannot run {}", program.display())));
    }
    bail!(
        "`{PROGRAM}` is neither in the folder of this program nor on PATH: install it with \
         `cargo install --path crates/lab`, or run it from the sources with \
         `cargo run --release -p {PROGRAM} -- ..`"
    )
}

fn next_to_this_one() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}
