//! What an installation needs besides the binary: a settings file, a unit, a compose file, completions, pages of
//! the manual.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::print;

const FILES: [(&str, &str); 3] = [
    (
        "soldonce.toml",
        include_str!("../../../deploy/soldonce.toml"),
    ),
    (
        "soldonce.service",
        include_str!("../../../deploy/systemd/soldonce.service"),
    ),
    ("compose.yaml", include_str!("../../../deploy/compose.yaml")),
];

/// Arguments of `soldonce init`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  soldonce init /etc/soldonce

Writes soldonce.toml (every setting, with its default), soldonce.service (for systemd) and
compose.yaml (three servers, PostgreSQL, Redis; its first lines say how). A file that is there already stays
as it is.")]
pub(crate) struct InitArgs {
    /// Where to write them; made if it is not there
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
}

/// Arguments of `soldonce completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  soldonce completions bash > /usr/share/bash-completion/completions/soldonce")]
pub(crate) struct CompletionsArgs {
    /// The shell that is to complete
    shell: Shell,
}

/// Arguments of `soldonce man`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  soldonce man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Where to write a page for each command; made if it is not there
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<Exit> {
    let folder = args.folder.display();
    let made = std::fs::create_dir_all(&args.folder);
    made.with_context(|| format!("{folder} cannot be made"))?;
    for (name, text) in FILES {
        let file = args.folder.join(name);
        let shown = file.display();
        let opened = OpenOptions::new().create_new(true).write(true).open(&file);
        match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => print(&format!("{shown} is written\n"))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                print(&format!("{shown} stays as it is\n"))?;
            }
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be written")),
        }
    }
    print(&format!(
        "next: soldonce serve --config {folder}/soldonce.toml\n"
    ))?;
    Ok(Exit::Done)
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let (mut command, mut text) = (crate::Cli::command(), Vec::new());
    clap_complete::generate(args.shell, &mut command, "soldonce", &mut text);
    print(&String::from_utf8(text)?)?;
    Ok(Exit::Done)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let written = |folder: &Path| {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(crate::Cli::command(), folder)
    };
    let folder = args.folder.display();
    written(&args.folder).with_context(|| format!("{folder} cannot be written"))?;
    Ok(Exit::Done)
}
