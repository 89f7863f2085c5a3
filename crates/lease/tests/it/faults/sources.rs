//! The scripts, statements and commands that the library sends, as its sources have them.

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

pub(crate) fn script(file: &str) -> String {
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

/// The commands to Redis that are no scripts, as the sources have them: `cmd("PING")`.
pub(super) fn commands() -> Vec<String> {
    const BEFORE: [&str; 2] = ["cmd(\"", "ask(connection, \""];
    let mut words = Vec::new();
    let mut folders = vec![folder_of_scripts().parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for file in folder.read_dir().unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let said = BEFORE.iter().flat_map(|before| text.split(before).skip(1));
                words.extend(said.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    words
}
