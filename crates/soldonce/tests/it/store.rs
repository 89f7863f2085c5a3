//! Where the ledger of a test is, as arguments of the program.

use std::path::{Path, PathBuf};

use soldonce_testkit::postgres::Postgres;

pub(crate) enum Store {
    Folder(PathBuf),
    Database(Postgres),
}

impl Store {
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Folder(path) => vec!["--data".to_owned(), path.display().to_string()],
            Self::Database(database) => vec!["--database-url".to_owned(), database.url()],
        }
    }

    /// Those of `serve`, too.
    pub(crate) fn served(&self) -> Vec<String> {
        let mut arguments = self.arguments();
        if matches!(self, Self::Database(_)) {
            // The database of a test never waits for its disk.
            arguments.push("--accept-loss".to_owned());
        }
        arguments
    }
}

/// A folder of this test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let own = format!("{name}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
