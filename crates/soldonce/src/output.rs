//! Reports go to standard output through here, so that `soldonce .. | head` ends quietly.

use std::io::{ErrorKind, Write};

/// Writes a report. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a value as indented JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes a report: as indented JSON with `--json`, else as text.
#[expect(clippy::fn_params_excessive_bools, reason = "the flag `--json`")]
pub(crate) fn report(
    json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if json {
        print_json(value)
    } else {
        print(&text())
    }
}
