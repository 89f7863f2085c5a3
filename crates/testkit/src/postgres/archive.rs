//! A base backup of a server and its WAL since: what point-in-time recovery needs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Postgres, PostgresOptions, USER, template};
use crate::program;
use crate::server::{Account, Folder, PATIENCE, until};
use crate::tools::run;

const MARK: &str = "-- mark\nSELECT pg_walfile_name(pg_create_restore_point('here'))";
const SWITCH: &str = "-- switch\nSELECT pg_switch_wal()";
const LAST_ARCHIVED: &str = "-- last_archived\nSELECT last_archived_wal FROM pg_stat_archiver";
const IS_PRIMARY: &str = "-- is_primary\nSELECT NOT pg_is_in_recovery()";

/// The base backup and the archived WAL, in a folder that is removed when this is dropped.
#[derive(Debug)]
pub struct Archive {
    folder: Folder,
    account: Account,
}

/// The base backup that a server begins with to be restored.
#[derive(Clone, Debug)]
pub(super) struct Origin(pub(super) PathBuf);

impl Archive {
    /// Creates an empty archive.
    pub fn new() -> Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::new("archive")?;
        account.owns(folder.path())?;
        Ok(Self { folder, account })
    }

    /// Starts a server that archives its WAL here.
    pub fn start_server(&self) -> Result<Postgres> {
        let log = self.folder.path().display();
        Postgres::options()
            .line("archive_mode = on")
            .line(&format!("archive_command = 'cp %p {log}/%f'"))
            .start()
    }

    /// Takes the base backup of a running server (`pg_basebackup`).
    pub fn back_up(&self, server: &Postgres) -> Result<()> {
        let program = program("pg_basebackup")?;
        let mut command = self.account.command(program.as_os_str(), None);
        command.args([
            "--checkpoint=fast",
            "--no-sync",
            "--username",
            USER,
            "--host",
        ]);
        command.arg(server.address().ip().to_string());
        command.args(["--port", &server.address().port().to_string(), "--pgdata"]);
        run(command.arg(self.base())).map(drop)
    }

    /// Creates the restore point, and waits until the WAL up to it is archived.
    pub fn mark(server: &Postgres) -> Result<()> {
        let marked = server.query(MARK)?;
        server.query(SWITCH)?;
        // Names of files of one timeline rise with the log.
        until("the log is archived", PATIENCE, || {
            server.query(LAST_ARCHIVED).is_ok_and(|last| last >= marked)
        })
    }

    /// Starts a server from the backup and the WAL up to the restore point, as a primary.
    pub fn restore(&self) -> Result<Postgres> {
        let log = self.folder.path().display();
        let options = PostgresOptions {
            origin: Some(Origin(self.base())),
            ..PostgresOptions::default()
        };
        let server = options
            .line(&format!("restore_command = 'cp {log}/%f %p'"))
            .line("recovery_target_name = 'here'")
            .line("recovery_target_action = 'promote'")
            .start()?;
        until("the server is taken back", PATIENCE, || {
            server.query(IS_PRIMARY).is_ok_and(|answer| answer == "t")
        })?;
        Ok(server)
    }

    fn base(&self) -> PathBuf {
        self.folder.join("base")
    }
}

impl Origin {
    /// Copies it to `data`, with the file that makes the server replay the archived WAL.
    pub(super) fn copy_to(&self, data: &Path) -> Result<()> {
        template::copy(&self.0, data)?;
        Ok(std::fs::write(data.join("recovery.signal"), "")?)
    }
}
