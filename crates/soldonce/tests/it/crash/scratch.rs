//! A folder for one test: gone when it passed, kept under `target/failures/` when it did not.

use std::fs;
use std::path::{Path, PathBuf};

use super::Run;

/// The folder.
pub(crate) struct Scratch {
    path: PathBuf,
    kept: PathBuf,
}

impl Scratch {
    pub(crate) fn new(run: &Run) -> Self {
        let own = format!("r2-{}-{}", run.name, run.seed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{own}-{}", std::process::id()));
        remove(&path);
        fs::create_dir_all(&path).unwrap();
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let kept = target.join("failures").join(own);
        Self { path, kept }
    }

    /// A path in the folder.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the folder goes if the test fails.
    pub(crate) fn kept(&self) -> &Path {
        &self.kept
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            remove(&self.path);
            return;
        }
        remove(&self.kept);
        let kept = fs::create_dir_all(self.kept.parent().unwrap_or(&self.kept))
            .and_then(|()| fs::rename(&self.path, &self.kept));
        if let Err(error) = kept {
            println!("{} stays where it is: {error}", self.path.display());
        }
    }
}

fn remove(path: &Path) {
    match fs::remove_dir_all(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => println!("{} cannot be removed: {error}", path.display()),
    }
}

/// Copies the files of a data folder; it has no folders in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
