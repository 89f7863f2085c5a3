//! The account a server runs as. PostgreSQL and `PgBouncer` refuse root, so as root they run as
//! an unprivileged user; as another user they run as that user.

use std::ffi::OsStr;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The unprivileged users a server may run as, best first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// The user that runs a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The user of the test.
    Own,
    /// User 1000 in a nested user namespace, because the test is root in a namespace only.
    Nested,
    /// Another user, because the test runs as root.
    Other { user: u32, group: u32 },
}

impl Account {
    /// Chooses an account that is not root.
    pub(crate) fn unprivileged() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        if !is_root_of_the_machine(&std::fs::read_to_string("/proc/self/uid_map")?) {
            return Ok(Self::Nested);
        }
        let accounts = std::fs::read_to_string("/etc/passwd")?;
        NAMES
            .iter()
            .find_map(|name| account(&accounts, name))
            .context("neither `postgres` nor `nobody` is in /etc/passwd")
    }

    /// Builds a command that runs `program` as this account, in `/`, which every account can enter.
    /// If `signal` is given, the process gets it when the thread that starts it ends.
    pub(crate) fn command(self, program: &OsStr, signal: Option<&str>) -> Command {
        let mut command = match self {
            Self::Own | Self::Other { .. } => Command::new("setpriv"),
            Self::Nested => {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-user=1000", "--map-group=1000"]);
                command.args(["--", "setpriv"]);
                command
            }
        };
        if let Some(signal) = signal {
            command.args(["--pdeathsig", signal]);
        }
        if let Self::Other { user, group } = self {
            command.args(["--reuid", &user.to_string(), "--regid", &group.to_string()]);
            command.arg("--clear-groups");
        }
        command.arg("--").arg(program).current_dir("/");
        command
    }

    /// Gives a file or folder to this account (chown).
    pub(crate) fn owns(self, path: &Path) -> Result<()> {
        match self {
            Self::Own | Self::Nested => Ok(()),
            Self::Other { user, group } => {
                Ok(chown(path, Some(user), Some(group))
                    .with_context(|| path.display().to_string())?)
            }
        }
    }
}

/// Tells whether the text of `/proc/self/uid_map` maps every user to itself.
fn is_root_of_the_machine(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Finds the user and group id of `name` in the text of /etc/passwd.
fn account(accounts: &str, name: &str) -> Option<Account> {
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let user = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    Some(Account::Other { user, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_namespace_is_told_from_root() {
        assert!(is_root_of_the_machine("         0          0 4294967295\n"));
        assert!(!is_root_of_the_machine(
            "         0      65534          1\n"
        ));
    }

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts =
            "root:x:0:0::/:/bin/sh\nno:x:1:1::/:/bin/sh\nnobody:x:65534:65533::/:/bin/sh";
        let nobody = Account::Other {
            user: 65_534,
            group: 65_533,
        };
        assert_eq!(account(accounts, "nobody"), Some(nobody));
        assert_eq!(account(accounts, "post"), None);
    }
}
