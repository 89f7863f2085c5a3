//! The disk is full: the data folder is a small tmpfs of its own, filled by holds until a write
//! fails with ENOSPC. Where user namespaces are forbidden strace says ENOSPC instead.

use std::path::Path;
use std::process::{Command, Stdio};

use super::cards::create_hall;
use super::draw::Draw;
use super::injected::{endless, read_only, recover, strace_from};
use super::load::{Ended, Worker};
use super::scratch::{Scratch, copy_folder};
use super::server::{PROGRAM, Server, arguments};
use super::{Run, Violation};

/// Sizes of the disk: a page more each, so that the last write of a commit is not always the same.
const SIZES_KIB: [usize; 8] = [900, 904, 908, 912, 916, 920, 1_024, 2_048];
/// A safety net: the largest disk is full long before.
const REQUESTS_MAX: usize = 5_000;

/// Puts the server on a disk of its own.
const MOUNT: &str = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@""#;

/// The same, in a namespace whose processes end with the first one; and starts the program once more when
/// it has ended, as a supervisor would.
const MOUNT_AND_RESTART: &str = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 &&
{ "$@"; echo "ended $?"; exec "$@"; }"#;
/// Requests of another buyer after the restart.
const REQUESTS_AGAIN: usize = 40;
/// What the operator finds to remove: room for a log of many commits, which is moved into the database later.
const BALLAST_BYTES: usize = 8 * 1_024 * 1_024;

/// How the disk is made full.
#[derive(Clone, Copy, Debug)]
enum Disk {
    /// A tmpfs of this size.
    Small,
    /// Every write fails from some call on.
    Injected,
}

impl Disk {
    /// The real thing, if this machine lets us.
    fn here() -> Self {
        let mut try_mount = unshare(
            "64k",
            Path::new(env!("CARGO_TARGET_TMPDIR")),
            &["true".to_owned()],
        );
        let output = try_mount.stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Self::Small,
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).into_owned();
                println!(
                    "full: no user namespace ({}), so strace injects ENOSPC",
                    why.trim()
                );
                Self::Injected
            }
            Err(error) => {
                println!("full: no unshare ({error}), so strace injects ENOSPC");
                Self::Injected
            }
        }
    }

    fn command(self, size_kib: usize, data: &Path) -> Command {
        let mut program = vec![PROGRAM.to_owned()];
        program.extend(arguments(data));
        match self {
            Self::Small => unshare(&format!("{size_kib}k"), data, &program),
            Self::Injected => strace_from(data, "ENOSPC", size_kib / 4),
        }
    }

    /// The folder as this process sees it while the server runs.
    fn seen(self, server: &Server, data: &Path) -> std::path::PathBuf {
        match self {
            Self::Small => {
                let root = format!("/proc/{}/root", server.id());
                Path::new(&root).join(data.strip_prefix("/").unwrap())
            }
            Self::Injected => data.to_owned(),
        }
    }
}

fn unshare(size: &str, data: &Path, program: &[String]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", size]);
    command.arg(data).args(program);
    command
}

/// A server on a small disk, which is started once more when it has ended.
fn supervised(size: &str, data: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
    ]);
    command.args(["sh", "-c", MOUNT_AND_RESTART, "sh", size]);
    command.arg(data).arg(PROGRAM).args(arguments(data));
    command
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let run = Run::new("full");
    let scratch = Scratch::new(&run);
    let disk = Disk::here();
    let mut acknowledged = 0;
    for size in SIZES_KIB {
        let data = scratch.join(&format!("full-{size}"));
        std::fs::create_dir_all(&data).unwrap();
        let (worker, mut violations) = fill(disk, size, &data, run.seed);
        acknowledged += worker.acknowledged;
        violations.extend(recover(&data.with_extension("larger"), worker));
        run.require_none(&format!("{size} KiB"), &violations, &scratch);
    }
    println!(
        "full: {} disks ({disk:?}) filled by {acknowledged} acknowledged requests; nothing lost",
        SIZES_KIB.len()
    );
}

/// A disk that was full takes files again: the server ends by itself, so that it is started again.
#[test]
fn a_server_on_a_disk_that_was_full_sells_again_after_its_restart() {
    let run = Run::new("full-restart");
    let scratch = Scratch::new(&run);
    let data = scratch.join("full");
    std::fs::create_dir_all(&data).unwrap();
    let disk = Disk::here();
    let command = match disk {
        Disk::Small => supervised("10m", &data),
        Disk::Injected => disk.command(SIZES_KIB[0], &data),
    };
    let mut server = Server::run(command, &data).unwrap();
    let seen = disk.seen(&server, &data);
    let ballast = seen.join("ballast");
    std::fs::write(&ballast, vec![7; BALLAST_BYTES]).unwrap();
    let (mut worker, mut violations) = work_until_full(&server, run.seed, "full-restart");
    std::fs::remove_file(&ballast).unwrap();
    let larger = data.with_extension("larger");
    match disk {
        Disk::Small => {
            assert_eq!(server.begins_again(), "ended 4\n");
            let mut client = server.client("again");
            let (target, _wait) = endless();
            // What became of the first one's last request is asked at the end.
            let mut second = Worker::timeless(1, &Draw::new(run.seed));
            let ended = second.requests(&mut client, REQUESTS_AGAIN, &target);
            assert!(ended.is_none(), "{ended:?}");
            assert_ne!(second.acknowledged, 0, "it sells again");
            worker.open.append(&mut second.open);
            worker.outcomes.append(&mut second.outcomes);
            drop(client);
            copy_folder(&seen, &larger);
            server.kill();
        }
        Disk::Injected => {
            assert_eq!(server.end().code(), Some(4));
            copy_folder(&data, &larger);
        }
    }
    let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
    assert!(log.contains("restart me: "), "{log}");
    violations.extend(recover(&larger, worker));
    run.require_none("a restart", &violations, &scratch);
}

/// Works until the disk is full, looks at the server, and copies the folder to a larger disk.
fn fill(disk: Disk, size: usize, data: &Path, seed: u64) -> (Worker, Vec<Violation>) {
    let server = Server::run(disk.command(size, data), data).unwrap();
    let (worker, mut violations) = work_until_full(&server, seed, &format!("{size} KiB"));
    copy_folder(&disk.seen(&server, data), &data.with_extension("larger"));
    if !server.stop().success() {
        violations.push(Violation::new("L8", "bad-end on a full disk"));
    }
    (worker, violations)
}

/// Works until a write fails, and looks at the server that is read-only then.
fn work_until_full(server: &Server, seed: u64, at: &str) -> (Worker, Vec<Violation>) {
    let mut client = server.client("full");
    assert_eq!(client.ask(&create_hall()).unwrap().status, 201);
    let mut worker = Worker::timeless(0, &Draw::new(seed));
    let (target, _wait) = endless();
    let ended = worker.requests(&mut client, REQUESTS_MAX, &target);
    let Some(Ended::Error(heard)) = ended else {
        panic!("{at}: the disk was never full: {ended:?}");
    };
    let violations = read_only(&mut client, &heard, &mut worker);
    (worker, violations)
}
