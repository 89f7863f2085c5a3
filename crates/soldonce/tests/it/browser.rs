//! The seat map page in a real Chromium against the real server. The tests themselves are
//! `crates/server/tests/browser/*.test.mjs`, each file started here and judged by its exit; what
//! the browser complains of fails the test during which it did.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use soldonce_testkit::{BROWSER_TESTS, Port, program, workspace};

/// One browser at a time: several fight for the machine and prove nothing more.
static BROWSER: Mutex<()> = Mutex::new(());

/// A browser: the variable that names it to the tests, and its name among the tools.
pub(crate) type Browser = (&'static str, &'static str);

pub(crate) const CHROMIUM: Browser = ("SOLDONCE_CHROMIUM", "chromium");

/// Most servers of one file.
const SERVERS: usize = 3;

/// Runs one file of tests; its servers keep their data in a folder that goes if all passed.
pub(crate) fn run(file: &str, (variable, tool): Browser) {
    let _alone = BROWSER.lock();
    let scratch = scratch(file);
    let screenshots = workspace().unwrap().join("target/screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    // A server that is stopped comes back to its port, which no other test takes meanwhile.
    let ports: Vec<Port> = (0..SERVERS).map(|_| Port::reserve().unwrap()).collect();
    let numbers = ports.iter().map(|port| port.number().to_string());
    let output = Command::new(program("node").unwrap())
        .args(["--test", "--test-reporter=spec"])
        .arg(format!("{file}.test.mjs"))
        .current_dir(workspace().unwrap().join(BROWSER_TESTS))
        .env("SOLDONCE_PROGRAM", env!("CARGO_BIN_EXE_soldonce"))
        .env(variable, program(tool).unwrap())
        .env("SOLDONCE_PORTS", numbers.collect::<Vec<_>>().join(" "))
        .env("SOLDONCE_SCRATCH", &scratch)
        .env("SOLDONCE_SCREENSHOTS", screenshots)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{file}: {}; logs and ledgers are in {}\n{}{}",
        output.status,
        scratch.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::remove_dir_all(scratch).unwrap();
}

fn scratch(file: &str) -> PathBuf {
    let name = format!("browser-{}-{}", file.replace('/', "-"), std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // What a killed test of this number left, if anything.
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Names the files, and shows that none lies there without being run.
macro_rules! files {
    ($($file:ident),+) => {
        $(#[test]
        fn $file() {
            run(stringify!($file), CHROMIUM);
        })+

        #[test]
        fn every_file_is_run() {
            let folder = workspace().unwrap().join(BROWSER_TESTS);
            let names = std::fs::read_dir(folder).unwrap();
            let mut found: Vec<_> = names
                .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
                .filter_map(|name| name.strip_suffix(".test.mjs").map(str::to_owned))
                .collect();
            let mut run = vec![$(stringify!($file).to_owned()),+];
            found.sort();
            run.sort();
            assert_eq!(found, run);
        }
    };
}

files!(
    axe, bighall, choosing, clock, connection, crowd, elsewhere, hold, keyboard, link, looks, pay,
    polling, race, refusal, report, storage
);
