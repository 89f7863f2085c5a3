//! The scripts and statements that the library sends, as its sources have them.

use std::path::Path;

fn folder_of_scripts() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/backend/redis/scripts"
    ))
}

/// Files of all scripts.
pub(super) fn scripts() -> Vec<String> {
    let files = folder_of_scripts().read_dir().unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    files.collect()
}

pub(super) fn script(file: &str) -> String {
    std::fs::read_to_string(folder_of_scripts().join(file)).unwrap()
}

/// The names of the statements on leases, as the sources have them: `-- lease_acquire`.
pub(super) fn statements() -> Vec<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/backend/postgres"));
    let mut names = Vec::new();
    for file in folder.read_dir().unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(path).unwrap();
            let titles = text.lines().filter_map(|line| line.strip_prefix("-- "));
            names.extend(
                titles
                    .filter(|name| name.starts_with("lease_"))
                    .map(str::to_owned),
            );
        }
    }
    names
}
