//! Where the ledger of a test is, as arguments of the program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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

/// A folder of this test's own, the same for the same name. It begins empty: numbers of processes come again.
pub(crate) fn folder(name: &str) -> PathBuf {
    static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let own = format!("{name}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    if MADE.lock().unwrap().insert(folder.clone()) {
        std::fs::remove_dir_all(&folder).ok();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_folder_begins_empty_and_stays_the_same() {
    let own = format!("begins-{}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    std::fs::create_dir_all(path.join("left")).unwrap();
    assert_eq!(folder("begins"), path);
    assert!(!path.join("left").exists());
    std::fs::create_dir(path.join("own")).unwrap();
    assert!(folder("begins").join("own").exists());
    std::fs::remove_dir_all(path).unwrap();
}
