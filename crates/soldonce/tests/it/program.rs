//! Programs that are run to their end, and what they say.

use std::process::Command;

use crate::crash::server::PROGRAM;

/// Runs a command to its end; gives its exit code, and what it said on both outputs.
pub(crate) fn said(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Runs a command that must end well; gives what it said.
#[track_caller]
pub(crate) fn ends_well(command: &mut Command) -> String {
    let (code, said) = said(command);
    assert_eq!(code, Some(0), "{command:?}: {said}");
    said
}

/// Serves on a database of a test, which never waits for its disk: a server must accept that.
pub(crate) fn serving_on(url: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--accept-loss"])
        .args(["--database-url", url]);
    command
}
