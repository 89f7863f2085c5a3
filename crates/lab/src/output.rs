//! Reports go to standard output through here, so that `soldonce-lab .. | head` ends quietly.

use std::io::{ErrorKind, Write};

/// Writes a report. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
