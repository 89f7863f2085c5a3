//! `soldonce lease run` against a private Redis: every exit code, every signal path, and that the
//! command is gone before its lease is.

use std::io::{BufRead, BufReader};
use std::iter;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};

/// Builds `soldonce lease run nightly` on this Redis, with the defaults of all other options.
fn bare(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soldonce"));
    command.args(["lease", "run", "nightly", "--redis-url", url]);
    command
}

/// A private Redis, and the lease `nightly` on it.
struct Rig {
    redis: Redis,
}

impl Rig {
    fn new() -> Self {
        Self {
            redis: Redis::start().unwrap(),
        }
    }

    /// Waits a minute for the lease unless the options say otherwise: a call without an answer, as on a machine that
    /// stalls, is made again.
    fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = bare(&self.redis.url());
        if !options.contains(&"--wait") {
            command.args(["--wait", "1m"]);
        }
        command.args(options).args(["--", "sh", "-c", script]);
        command
    }

    fn run(&self, options: &[&str], script: &str) -> Output {
        self.command(options, script).output().unwrap()
    }

    fn code(&self, options: &[&str], script: &str) -> Option<i32> {
        self.run(options, script).status.code()
    }

    /// Starts a run whose script prints a line, and returns once it has.
    fn start(&self, options: &[&str], script: &str) -> Run {
        Run::of(&mut self.command(options, script))
    }

    /// Whether the backend holds a lease now.
    fn is_held(&self) -> bool {
        !self.key().is_empty()
    }

    /// Waits until none is held, less long than one lives. A release may be on its way when its runner has ended.
    fn comes_free(&self) {
        let limit = Duration::from_secs(20);
        until("the lease is given back", limit, || !self.is_held()).unwrap();
    }

    fn key(&self) -> String {
        self.redis.cli(&["KEYS", "*:l:nightly"]).unwrap()
    }

    /// When the backend will end the lease, by the wall clock.
    fn end_ms(&self) -> i64 {
        let key = self.key();
        let end = self.redis.cli(&["PEXPIRETIME", key.trim()]).unwrap();
        end.trim().parse().unwrap()
    }
}

/// A run whose script has told its process id.
struct Run {
    runner: Child,
    child: u32,
    lines: BufReader<std::process::ChildStdout>,
}

impl Run {
    /// Starts it, and waits for the first line.
    fn of(command: &mut Command) -> Self {
        let mut runner = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(runner.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        let child = first.trim().parse().unwrap();
        Run {
            runner,
            child,
            lines,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.runner.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Whether the script still runs; one that is only not yet reaped does not.
    fn is_alive(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn code(&mut self) -> Option<i32> {
        self.runner.wait().unwrap().code()
    }
}

#[test]
fn the_code_of_the_command_is_passed_on() {
    let rig = Rig::new();
    assert_eq!(rig.code(&[], "exit 0"), Some(0));
    assert_eq!(rig.code(&[], "exit 7"), Some(7));
    assert_eq!(rig.code(&[], "kill -9 $$"), Some(137));
    rig.comes_free();
}

#[test]
fn a_command_that_cannot_run_or_is_missing_has_its_codes() {
    let rig = Rig::new();
    let run = |program: &str| {
        let mut command = bare(&rig.redis.url());
        command.args(["--wait", "1m", "--", program]);
        command.output().unwrap().status.code()
    };
    assert_eq!(run("no-such-program"), Some(127));
    assert_eq!(run("/etc/passwd"), Some(126));
    rig.comes_free();
}

#[test]
fn the_command_knows_its_lease_and_never_its_owner() {
    let rig = Rig::new();
    let script = "env | grep -c '^SOLDONCE_LEASE_'; echo $SOLDONCE_LEASE_NAME; \
                  echo $SOLDONCE_LEASE_TOKEN; eval \"head -n 1 <&$SOLDONCE_LEASE_STATUS_FD\"";
    let output = rig.run(&["--meta", "host=a"], script);
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[..2], ["5", "nightly"]);
    assert_eq!(lines[2].len(), 16);
    let held = lines[3].strip_prefix("held ").unwrap();
    assert!(held.parse::<i64>().unwrap() > 1_700_000_000_000);
}

#[test]
fn a_held_lease_is_refused_at_once_or_after_the_wait() {
    let rig = Rig::new();
    let mut first = rig.start(&[], "echo $$; sleep 60");
    let at_once = bare(&rig.redis.url()).args(["--", "true"]).output();
    let at_once = at_once.unwrap();
    assert_eq!(at_once.status.code(), Some(110));
    let said = String::from_utf8(at_once.stderr).unwrap();
    assert!(said.contains("held by another owner; "), "{said}");
    // Long enough for another try after one without an answer.
    assert_eq!(rig.code(&["--wait", "3s"], "exit 0"), Some(110));
    first.signal(Signal::TERM);
    assert_eq!(first.code(), Some(143));
    assert_eq!(rig.code(&[], "exit 0"), Some(0));
}

#[test]
fn a_wrong_option_is_a_usage_error() {
    let rig = Rig::new();
    assert_eq!(
        rig.code(&["--ttl", "8s", "--grace", "5s"], "exit 0"),
        Some(2)
    );
    assert_eq!(rig.code(&["--ttl", "forever"], "exit 0"), Some(2));
    assert_eq!(rig.code(&["--cap", "1s"], "exit 0"), Some(2));
}

#[test]
fn an_acquire_without_an_answer_is_unknown_and_nothing_runs() {
    let rig = Rig::new();
    let proxy = FaultProxy::to(rig.redis.address()).unwrap();
    let url = proxy.url(&rig.redis.url(), rig.redis.address());
    let mut command = bare(&url);
    command.args(["--", "echo", "ran"]);
    // A busy machine may take all the time of the call for its connection: then nothing was asked.
    let asked = || {
        proxy.heal();
        // Every question about the name is swallowed, on whichever connection it comes.
        for _ in 0..20 {
            proxy.next_with("nightly", Fault::HalfOpen);
        }
        let output = command.output().unwrap();
        (proxy.to_come() < 20).then_some(output)
    };
    let output = iter::repeat_with(asked).take(20).flatten().next().unwrap();
    assert_eq!(output.status.code(), Some(111));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_backend_that_is_not_there_has_its_code() {
    let mut rig = Rig::new();
    rig.redis.kill().unwrap();
    let output = rig.run(&["--wait", "0"], "exit 0");
    assert_eq!(output.status.code(), Some(113));
    assert!(output.stderr.starts_with(b"soldonce: nightly: "));
}

#[test]
fn a_signal_while_waiting_leaves_nothing_behind() {
    let rig = Rig::new();
    let mut first = rig.start(&[], "echo $$; sleep 60");
    let mut waiting = rig.command(&["--wait", "1m", "--fair"], "exit 0");
    let mut waiting = waiting.spawn().unwrap();
    let queued = || !rig.redis.cli(&["KEYS", "*:q:nightly"]).unwrap().is_empty();
    until("it waits", PATIENCE, queued).unwrap();
    let pid = Pid::from_raw(i32::try_from(waiting.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    // A place that is not given back lasts a minute.
    let limit = Duration::from_secs(20);
    until("its place in the queue is left", limit, || !queued()).unwrap();
    first.signal(Signal::TERM);
    first.code();
    rig.comes_free();
}

#[test]
fn signals_while_running_reach_the_whole_group() {
    let rig = Rig::new();
    for (signal, word) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::ALARM, "ALRM"),
    ] {
        let script = format!("trap 'exit 9' {word}; echo $$; while :; do sleep 0.05; done");
        let mut run = rig.start(&[], &script);
        run.signal(signal);
        assert_eq!(run.code(), Some(9), "signal {word}");
        rig.comes_free();
    }
}

/// Whether a process ignores a signal.
fn ignores(process: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = u64::from_str_radix(bits.unwrap().trim(), 16).unwrap();
    bits & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let rig = Rig::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"]);
    let run = rig.command(&[], "echo $$; while :; do sleep 0.05; done");
    let mut run = Run::of(shell.arg(run.get_program()).args(run.get_args()));
    for signal in [Signal::HUP, Signal::INT] {
        assert!(ignores(run.runner.id(), signal), "the runner");
        assert!(ignores(run.child, signal), "the command");
        run.signal(signal);
    }
    assert!(!ignores(run.child, Signal::TERM));
    run.signal(Signal::TERM);
    assert_eq!(run.code(), Some(143));
}

#[test]
fn the_command_is_gone_before_the_lease_when_the_backend_stops() {
    let mut rig = Rig::new();
    let options = ["--ttl", "20s", "--grace", "3s"];
    let script = "trap 'echo asked' TERM; echo $$; while :; do date +%s%3N; sleep 0.02; done";
    let mut run = rig.start(&options, script);
    // Just after a renewal, so that the end that is read is the one that counts.
    let first = rig.end_ms();
    until("it is renewed", PATIENCE, || rig.end_ms() != first).unwrap();
    let end = rig.end_ms();
    rig.redis.pause().unwrap();
    until("the command is killed", PATIENCE, || !run.is_alive()).unwrap();
    rig.redis.resume().unwrap();
    let said = std::io::read_to_string(&mut run.lines).unwrap();
    assert_eq!(said.lines().filter(|line| *line == "asked").count(), 1);
    // Both are of this machine's clock. Behind a pause it stood still, and with it what ends the command.
    let times = said.lines().filter_map(|line| line.parse::<i64>().ok());
    let times: Vec<i64> = times.collect();
    let steady = times.windows(2).take_while(|two| two[1] - two[0] < 1_000);
    let last = times[steady.count()];
    assert!(
        last < end,
        "it was at work at {last}, its lease ended at {end}"
    );
    assert_eq!(run.code(), Some(112));
}

#[test]
fn what_the_command_left_in_its_group_ends_with_it() {
    let rig = Rig::new();
    let mut run = rig.start(&[], "sleep 60 & echo $!");
    assert_eq!(run.code(), Some(0));
    until("what it left is dead", PATIENCE, || !run.is_alive()).unwrap();
}

#[test]
fn the_command_dies_with_a_killed_runner() {
    let rig = Rig::new();
    let mut run = rig.start(&[], "echo $$; while :; do sleep 0.05; done");
    run.signal(Signal::KILL);
    until("the command is dead", PATIENCE, || !run.is_alive()).unwrap();
    assert_eq!(run.code(), None);
    assert!(
        rig.is_held(),
        "a killed runner releases nothing: the ttl does"
    );
}

#[test]
fn what_the_command_started_dies_with_a_killed_runner() {
    let rig = Rig::new();
    let run = rig.start(&[], "sleep 60 & echo $!; wait");
    run.signal(Signal::KILL);
    until("the grandchild is dead", PATIENCE, || !run.is_alive()).unwrap();
}

#[test]
fn a_lease_taken_from_under_the_command_ends_it() {
    let rig = Rig::new();
    // Long enough for the command to start in, on a machine that stalls.
    let options = ["--ttl", "12s", "--grace", "1s"];
    let mut run = rig.start(&options, "echo $$; sleep 60");
    rig.redis.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(run.code(), Some(112));
    assert!(!run.is_alive());
}

#[test]
fn at_least_keeps_the_lease_after_a_short_command() {
    let rig = Rig::new();
    let mut run = rig.start(&["--at-least", "1m"], "echo $$");
    until("the command is done", PATIENCE, || !run.is_alive()).unwrap();
    assert_eq!(rig.code(&["--wait", "0"], "exit 0"), Some(110));
    run.signal(Signal::TERM);
    assert_eq!(run.code(), Some(0));
    assert!(
        rig.is_held(),
        "a signal must not break the promise: the ttl ends it"
    );
}

#[test]
fn the_report_tells_what_was() {
    let rig = Rig::new();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = file.join(format!("lease-report-{}.json", std::process::id()));
    let path = file.to_str().unwrap();
    assert_eq!(rig.code(&["--report", path], "exit 3"), Some(3));
    let text = std::fs::read_to_string(&file).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(report["outcome"], "done");
    assert_eq!(report["exit_code"], 3);
    assert_eq!(report["token"].as_str().unwrap().len(), 16);
    assert!(report["held_ms"].is_u64());
}
