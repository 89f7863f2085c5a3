//! Unpacks Debian packages without installing them, as any user. The package lists are refreshed in
//! a folder of our own (those of an image are empty or old), apt resolves what the machine lacks,
//! and a launcher gives the unpacked libraries to the program and to what it starts.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Machine;
use super::machine::run;

/// Unpacks `packages` and what the machine lacks of their dependencies; returns the unpacked root.
pub(super) fn unpack(machine: &Machine, packages: &[&str]) -> Result<PathBuf> {
    let archives = machine.deps().join("apt/archives");
    let root = machine.deps().join("debian");
    for folder in ["apt/lists/partial", "apt/archives/partial", "debian"] {
        std::fs::create_dir_all(machine.deps().join(folder))?;
    }
    run(apt(machine).arg("update"))?;
    let plan = run(apt(machine)
        .args(["install", "--simulate", "--no-install-recommends"])
        .args(packages))?;
    let mut wanted = planned(&plan);
    wanted.extend(packages.iter().map(ToString::to_string));
    machine.report(&format!(
        "fetching {} ({} Debian packages) into {}",
        packages.join(", "),
        wanted.len(),
        root.display(),
    ));
    run(apt(machine)
        .arg("download")
        .args(&wanted)
        .current_dir(&archives))?;
    for archive in files_ending(&archives, ".deb")? {
        run(Command::new("dpkg")
            .arg("--extract")
            .arg(&archive)
            .arg(&root))?;
        std::fs::remove_file(archive)?;
    }
    Ok(root)
}

/// Builds an apt-get with lists and cache of our own, which needs neither root nor its locks.
fn apt(machine: &Machine) -> Command {
    let state = machine.deps().join("apt");
    let mut command = Command::new("apt-get");
    command.env("LC_ALL", "C").arg("--quiet");
    for option in [
        format!("Dir::State::Lists={}", state.join("lists").display()),
        format!("Dir::Cache={}", state.display()),
        "APT::Sandbox::User=".to_owned(),
        "APT::Update::Error-Mode=any".to_owned(),
        "Debug::NoLocking=1".to_owned(),
    ] {
        command.arg("-o").arg(option);
    }
    command
}

/// Parses the output of `apt-get install --simulate`: the names of the packages to install.
pub(super) fn planned(plan: &str) -> BTreeSet<String> {
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// Writes a script that runs `program` with the unpacked libraries. Fails if `ldd` misses one.
pub(super) fn write_launcher(
    launcher: &Path,
    root: &Path,
    program: &Path,
    environment: &[(&str, &str)],
) -> Result<()> {
    let libraries = std::env::join_paths(library_folders(root)?)?;
    let listing = run(Command::new("ldd")
        .arg(program)
        .env("LD_LIBRARY_PATH", &libraries))?;
    let missing: Vec<&str> = listing
        .lines()
        .filter(|line| line.contains("not found"))
        .collect();
    ensure!(
        missing.is_empty(),
        "{} lacks libraries: {missing:?}",
        program.display()
    );

    let mut lines = vec!["#!/bin/sh".to_owned()];
    lines.push(format!("export LD_LIBRARY_PATH={}", quoted(&libraries)));
    for (variable, folder) in environment {
        lines.push(format!(
            "export {variable}={}",
            quoted(root.join(folder).as_os_str())
        ));
    }
    lines.push(format!("exec {} \"$@\"\n", quoted(program.as_os_str())));
    std::fs::create_dir_all(launcher.parent().context("a launcher lies in a folder")?)?;
    std::fs::write(launcher, lines.join("\n"))?;
    std::fs::set_permissions(launcher, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Finds the folders with shared libraries, under `lib` and `usr/lib` of the unpacked root.
fn library_folders(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut folders = BTreeSet::new();
    let mut open = vec![root.join("lib"), root.join("usr/lib")];
    open.retain(|folder| folder.is_dir());
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if is_library(&entry.file_name().to_string_lossy()) {
                folders.insert(folder.clone());
            }
        }
    }
    Ok(folders)
}

fn is_library(name: &str) -> bool {
    name.starts_with("lib") && name.contains(".so")
}

/// Lists the files of a folder whose names end with `ending`, in name order.
pub(super) fn files_ending(folder: &Path, ending: &str) -> Result<BTreeSet<PathBuf>> {
    let entries: Vec<_> = folder.read_dir()?.collect::<Result<_, _>>()?;
    let paths = entries.iter().map(std::fs::DirEntry::path);
    Ok(paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect())
}

/// Quotes `text` as one word of a shell.
fn quoted(text: &std::ffi::OsStr) -> String {
    format!("'{}'", text.to_string_lossy().replace('\'', "'\\''"))
}
