//! Unpacks a Python wheel that contains a program, by pip, which checks its hash. Debian's own
//! Node.js cannot be used unpacked (it loads scripts from fixed folders) and may be too old.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::machine::run;
use super::{Machine, debian, list, provide};

/// Installs `requirements` (the text of a pip requirements file with hashes) into `folder`.
pub(super) fn unpack(machine: &Machine, requirements: &str, folder: &Path) -> Result<()> {
    let python = provide(&list::PYTHON, machine)?;
    std::fs::create_dir_all(folder)?;
    let file = folder.join("requirements.txt");
    std::fs::write(&file, requirements)?;
    machine.report(&format!(
        "fetching {} (Python wheel) into {}",
        requirements.split_whitespace().next().unwrap_or_default(),
        folder.display(),
    ));
    let mut pip = pip(machine, &python)?;
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
    ])
    .args([
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--requirement",
    ])
    .arg(&file)
    .arg("--target")
    .arg(folder);
    run(&mut pip).map(drop)
}

/// Finds the pip of this Python, else the wheel of Debian's pip, which runs from its archive.
fn pip(machine: &Machine, python: &Path) -> Result<Command> {
    let mut command = Command::new(python);
    if run(Command::new(python).args(["-m", "pip", "--version"])).is_ok() {
        command.args(["-m", "pip"]);
        return Ok(command);
    }
    let wheels = debian::unpack(machine, &["python3-pip-whl"])?.join("usr/share/python-wheels");
    let wheel = debian::files_ending(&wheels, ".whl")?
        .into_iter()
        .find(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("pip-"))
        })
        .context("python3-pip-whl holds no pip")?;
    command.arg(wheel.join("pip"));
    Ok(command)
}
