//! Runs a test again in a network namespace of its own, where it may create bridges and veths.

use std::process::Command;

use anyhow::{Result, ensure};

use super::{Kind, Network};
use crate::player::test_name;
use crate::program;
use crate::server::make_bridge;

/// The variable that is set in the process that runs the test again.
const INSIDE: &str = "SOLDONCE_INSIDE_NETNS";

/// Arguments of `unshare`: for root, and for another user or root without that right.
const WAYS: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];

/// The commands that a test needs inside, run beforehand to see whether the kernel permits them.
const REHEARSAL: &str = "\"$0\" link add name bridge type bridge \
                         && \"$0\" link add name port type veth peer name inside \
                         && unshare --net true";

/// Runs `body`, which is all of a test, with a network of its own: the test's program is started
/// again for this one test, in a new network namespace, and `body` runs there.
///
/// # Panics
/// As `body` does.
pub fn within(body: impl FnOnce(&Network) -> Result<()>) -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        make_bridge()?;
        return body(&Network::of(Kind::Namespaces));
    }
    match permitted()? {
        Ok(way) => run_again(way),
        Err(why) => {
            report(&format!(
                "no network namespaces here ({why}): partitions are made by proxies"
            ));
            body(&Network::of_proxies())
        }
    }
}

/// Tries [`WAYS`] and returns the first that the kernel permits, else why it does not.
fn permitted() -> Result<Result<&'static [&'static str], String>> {
    let ip = program("ip")?;
    let mut complaint = None;
    for way in WAYS {
        let mut rehearsal = Command::new("unshare");
        rehearsal.args(way).args(["--", "sh", "-c", REHEARSAL]);
        let output = rehearsal.arg(&ip).output()?;
        if output.status.success() {
            return Ok(Ok(way));
        }
        complaint = Some(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(Err(complaint.unwrap_or_default()))
}

fn run_again(way: &[&str]) -> Result<()> {
    let name = test_name()?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare"]);
    command.args(way).arg("--").arg(std::env::current_exe()?);
    command.args([&name, "--exact", "--nocapture"]);
    // This thread waits for the end, so the signal at its death comes at the right time.
    let output = command.env(INSIDE, "1").output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    report(&printed);
    report(&String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{name} failed in its own network");
    ensure!(
        printed.contains("1 passed"),
        "{name} did not run in its own network"
    );
    Ok(())
}

#[expect(clippy::print_stderr, reason = "what a test tells its reader")]
fn report(line: &str) {
    eprintln!("{line}");
}
