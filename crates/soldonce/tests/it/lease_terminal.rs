//! `soldonce lease run` as people use it: typed into a shell, in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::time::Duration;

use nix::pty::openpty;
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};

/// A shell in a terminal, and a Redis for its leases.
struct Session {
    redis: Redis,
    shell: Child,
    terminal: File,
    screen: String,
    /// How much of the screen was read.
    read: usize,
}

impl Session {
    fn new() -> Self {
        let (pair, redis) = (openpty(None, None).unwrap(), Redis::start().unwrap());
        let slave = || pair.slave.try_clone().unwrap();
        // A session of its own, whose terminal this is.
        let mut shell = Command::new("setsid");
        shell.args(["--ctty", "sh", "-i", "-m"]).env("PS1", "");
        // It says in the language of its user that something is stopped.
        shell.env("LC_ALL", "C");
        shell.env("RUN", env!("CARGO_BIN_EXE_soldonce"));
        shell.env("URL", redis.url()).env_remove("ENV");
        shell.stdin(slave()).stdout(slave()).stderr(slave());
        let mut session = Self {
            redis,
            shell: shell.spawn().unwrap(),
            terminal: File::from(pair.master),
            screen: String::new(),
            read: 0,
        };
        // What is typed shows no more, so what shows was printed.
        session.type_in("stty -echo; echo 'the shell is here'");
        session.see("the shell is here\r");
        // A call without an answer, as on a machine that stalls, is made again.
        session.type_in(
            "run() { $RUN lease run nightly --redis-url $URL --wait 1m \"$@\"; }; echo ready",
        );
        session.see("ready");
        session
    }

    fn type_in(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for `text`, and gives what stands from there to the end of its line.
    fn see(&mut self, text: &str) -> String {
        loop {
            let unread = self.screen.get(self.read..).unwrap();
            let found = unread.split_once(text);
            if let Some((line, _)) = found.and_then(|(_, rest)| rest.split_once(['\r', '\n'])) {
                let line = line.to_owned();
                self.read += unread.find(text).unwrap() + text.len() + line.len();
                return line;
            }
            let mut bytes = [0; 1_024];
            let count = self.terminal.read(&mut bytes).unwrap();
            let seen = bytes.get(..count).unwrap();
            self.screen += &String::from_utf8_lossy(seen);
        }
    }

    /// Types what prints its process id after `pid`.
    fn start(&mut self, line: &str) -> u32 {
        self.type_in(line);
        self.see("pid ").parse().unwrap()
    }

    fn is_held(&self) -> bool {
        let keys = self.redis.cli(&["KEYS", "*:l:nightly"]);
        !keys.unwrap().is_empty()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // With the terminal, all that it has in it gets HUP.
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}

/// One letter: running, sleeping, stopped.
fn state(process: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

fn parent(process: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

fn wait_for_state(process: u32, wanted: char) {
    let is = || state(process) == Some(wanted);
    until("its state", PATIENCE, is).unwrap();
}

/// For a script in single quotes.
const RUN_SLEEP: &str = "$RUN lease run nightly --redis-url $URL --wait 1m -- \
                         sh -c \"echo pid \\$\\$; exec sleep 60\"";

const READER: &str = "sh -c 'echo pid $$; read line; echo got $line'";

#[test]
fn a_command_reads_the_terminal_and_a_script_after_it_does() {
    let mut session = Session::new();
    let script = format!("(run -- {READER}; read after; echo then $after)");
    session.start(&script);
    session.type_in("one");
    assert_eq!(session.see("got "), "one");
    session.type_in("two");
    assert_eq!(session.see("then "), "two");
    session.type_in("echo the shell again");
    session.see("the shell again");
}

#[test]
fn a_command_whose_output_is_not_the_terminal_reads_it_when_it_asks() {
    let mut session = Session::new();
    session.start(&format!("run -- {READER} | cat"));
    session.type_in("one");
    assert_eq!(session.see("got "), "one");
    session.type_in("run -- stty -echo >/dev/null; echo code $?");
    assert_eq!(session.see("code "), "0");
}

#[test]
fn a_command_in_the_background_of_a_script_leaves_the_terminal_to_it() {
    let mut session = Session::new();
    session.start(&format!(
        "sh -c '{RUN_SLEEP} & read line; echo got $line; kill $!; wait'"
    ));
    session.type_in("one");
    assert_eq!(session.see("got "), "one");
}

#[test]
fn an_interrupt_ends_the_command_and_the_script_around_it() {
    let mut session = Session::new();
    session.start(&format!("sh -c '{RUN_SLEEP}; echo went on'"));
    session.press("\u{3}");
    session.type_in("echo the shell again");
    session.see("the shell again");
    assert!(!session.screen.contains("went on"), "{}", session.screen);
    // A release may be on its way when its runner has ended.
    let limit = Duration::from_secs(20);
    until("the lease is given back", limit, || !session.is_held()).unwrap();
}

#[test]
fn a_stop_stops_both_and_both_go_on() {
    let mut session = Session::new();
    let command = session.start(&format!("run -- {READER}"));
    let runner = parent(command);
    session.press("\u{1a}");
    session.see("Stopped");
    wait_for_state(command, 'T');
    wait_for_state(runner, 'T');
    session.type_in("fg");
    session.type_in("one");
    assert_eq!(session.see("got "), "one");
    session.type_in("echo code $?");
    assert_eq!(session.see("code "), "0");
}

#[test]
fn a_stop_that_outlasts_the_lease_ends_the_command() {
    let mut session = Session::new();
    // Long enough to be stopped in, on a machine that stalls.
    let command = session.start(&format!("run --ttl 12s --grace 200ms -- {READER}"));
    session.press("\u{1a}");
    session.see("Stopped");
    wait_for_state(command, 'T');
    until("the lease has ended", PATIENCE, || !session.is_held()).unwrap();
    session.type_in("fg; echo code $?");
    assert_eq!(session.see("code "), "112");
    assert!(!session.screen.contains("got "), "{}", session.screen);
}
