//! The first admin key: that of the setting, or one that is made. A key that is made is shown on a
//! terminal and nowhere else: what a service writes to its standard output is kept in logs for long.

use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use soldonce_core::Text;
use soldonce_engine::Engine;
use soldonce_engine::keys::{ApiKey, Scope};

use super::ledger::LedgerPlace;
use super::settings::AdminKey;

/// The file in the data folder that keeps a key until the operator takes it.
const FILE: &str = "admin-key";

/// An admin key that was made at this start, as operators are told of it.
pub(crate) enum NewAdminKey {
    /// The key itself, for a terminal.
    Shown(String),
    /// The file that has it.
    Kept(PathBuf),
}

impl fmt::Display for NewAdminKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shown(key) => write!(f, "{key} (shown once)"),
            Self::Kept(path) => {
                write!(f, "in {} (remove it when you have the key)", path.display())
            }
        }
    }
}

/// Takes the operator's admin key, or makes one if the ledger has none.
///
/// # Errors
/// When the given key was revoked, or the file of a new one cannot be written.
pub(super) async fn admin_key(
    engine: &Engine,
    given: Option<&AdminKey>,
    place: &LedgerPlace,
) -> anyhow::Result<Option<NewAdminKey>> {
    if let Some(AdminKey(text)) = given {
        let adopted = engine.adopt_admin_key(text).await?;
        for key in adopted.ended {
            tracing::info!(%key, "admin_key: the key that this setting named before is revoked");
        }
        anyhow::ensure!(
            adopted.key.revoked_at.is_none(),
            "admin_key: this key was revoked and stays so; choose another"
        );
        return Ok(None);
    }
    let is_admin = |key: &ApiKey| key.revoked_at.is_none() && key.scopes.contains(&Scope::Admin);
    if engine.keys().iter().any(is_admin) {
        if let Some(folder) = place.folder() {
            let folder = folder.display();
            tracing::info!(
                "there is an admin key, made earlier; for another one stop the server and run `soldonce keys \
                 create --scope admin --data {folder}`"
            );
        }
        return Ok(None);
    }
    if std::io::stdout().is_terminal() {
        return Ok(Some(NewAdminKey::Shown(make(engine).await?)));
    }
    let Some(folder) = place.folder() else {
        tracing::warn!(
            "there is no admin key, and none is made where no terminal shows it: set admin_key, or run \
             `soldonce keys create --scope admin` with --database-url"
        );
        return Ok(None);
    };
    let path = folder.join(FILE);
    let keep = || format!("admin_key: {} cannot be written", path.display());
    // Opened first: a folder that takes no file must not cost the ledger a key that is lost.
    let mut file = private_file(&path).with_context(keep)?;
    let key = make(engine).await?;
    let written = writeln!(file, "{key}").and_then(|()| file.sync_all());
    written.with_context(keep).context(
        "a key was made and is lost: make another with `soldonce keys create --scope admin`",
    )?;
    Ok(Some(NewAdminKey::Kept(path)))
}

async fn make(engine: &Engine) -> anyhow::Result<String> {
    let name = Text::parse("admin")?;
    let (_, text) = engine.create_key(name, vec![Scope::Admin]).await?;
    Ok(text)
}

/// Opens an empty file that other users cannot read, also if there was one that they could.
pub(crate) fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let file = options.open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
