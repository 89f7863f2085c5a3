//! The three scripts on a real Redis, each call as the engine sends it, by a clock that the test moves.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use soldonce_testkit::redis::{Redis, Reply};

/// What a claim lasts, and what any belief may.
pub(super) const CLAIM_MS: i64 = 2_000;
pub(super) const KEEP_MS: i64 = 600_000;

pub(super) const KEY: &str = "sd:{test.00}:0:0:0";

/// When every test begins.
const START_MS: i64 = 1_790_000_000_000;

thread_local! {
    /// What the next bench of this thread suffers from: a file, a line of it, and another in its place.
    static BUG: RefCell<Option<[&'static str; 3]>> = const { RefCell::new(None) };
}

/// A zone and the scripts that work on it.
pub(super) struct Bench {
    pub(super) redis: Redis,
    try_units: String,
    note: String,
    drop_claims: String,
    now_ms: Cell<i64>,
}

/// What a try claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Claim,
    Look,
}

/// One note: letter, unit, version, remaining milliseconds, holder.
pub(super) type NoteArgs = (char, u32, u64, i64, u64);

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            redis: Redis::start().unwrap(),
            try_units: script("shield_try.lua"),
            note: script("shield_note.lua"),
            drop_claims: script("shield_drop.lua"),
            now_ms: Cell::new(START_MS),
        }
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms.get()
    }

    pub(super) fn advance(&self, ms: i64) {
        self.now_ms.set(self.now_ms() + ms);
    }

    /// What the script answers, or how Redis refused.
    pub(super) fn run(&self, script: &str, args: &[String]) -> Result<Vec<i64>, String> {
        let mut command = vec!["EVAL", script, "1", KEY];
        command.extend(args.iter().map(String::as_str));
        let now = self.now_ms().to_string();
        if script.contains(CLOCK) {
            command.push(&now);
        }
        match self.redis.ask(&command).unwrap() {
            Reply::Array(parts) => Ok(parts.into_iter().map(integer).collect()),
            Reply::Error(why) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn try_as(
        &self,
        who: u64,
        aim: Aim,
        units: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<i64>, String> {
        let claims = i64::from(aim == Aim::Claim);
        let mut args = vec![who.to_string()];
        args.extend([CLAIM_MS, KEEP_MS, claims].map(|number| number.to_string()));
        args.extend(units.into_iter().map(|unit| unit.to_string()));
        self.run(&self.try_units, &args)
    }

    /// Tries to claim.
    pub(super) fn claim(&self, who: u64, units: &[u32]) -> Vec<i64> {
        let answer = self.try_as(who, Aim::Claim, units.iter().copied());
        answer.unwrap_or_else(|why| panic!("{why}"))
    }

    pub(super) fn note_all(&self, notes: &[NoteArgs]) -> Result<Vec<i64>, String> {
        let mut args = vec![KEEP_MS.to_string()];
        for (kind, unit, version, left_ms, who) in notes {
            let kind = u32::from(*kind).to_string();
            args.extend([kind, unit.to_string(), version.to_string()]);
            args.extend([left_ms.to_string(), who.to_string()]);
        }
        self.run(&self.note, &args)
    }

    /// Tells one note; whether it was taken.
    pub(super) fn note(&self, told: NoteArgs) -> bool {
        let answer = self.note_all(&[told]);
        answer.unwrap_or_else(|why| panic!("{why}")) == [1]
    }

    pub(super) fn drop_of(&self, who: u64, units: &[u32]) -> Vec<i64> {
        let mut args = vec![who.to_string()];
        args.extend(units.iter().map(ToString::to_string));
        self.run(&self.drop_claims, &args)
            .unwrap_or_else(|why| panic!("{why}"))
    }

    /// What stands in the zone.
    pub(super) fn entry(&self, unit: u32) -> String {
        self.redis.cli(&["HGET", KEY, &unit.to_string()]).unwrap()
    }

    /// Writes into the zone what no script would.
    pub(super) fn plant(&self, unit: u32, entry: &str) {
        let unit = unit.to_string();
        self.redis.cli(&["HSET", KEY, &unit, entry]).unwrap();
    }
}

/// How a script knows the time of the test.
const CLOCK: &str = "local NOW = table.remove(ARGV)";

/// The text of a script with this thread's bug and the test's clock.
fn script(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shield/scripts");
    let mut text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    if let Some([bugged, line, instead]) = BUG.with_borrow(|bug| *bug)
        && bugged == file
    {
        let lines = text.lines().map(str::trim);
        let found = lines.filter(|each| *each == line).count();
        assert_eq!(found, 1, "a planted bug must have its place: {line}");
        text = text.replace(line, instead);
    }
    let time = "redis.call('TIME')";
    if text.contains(time) {
        text = text.replace(time, "{math.floor(NOW / 1000), NOW % 1000 * 1000}");
        let (head, body) = text.split_once('\n').unwrap();
        text = format!("{head}\n{CLOCK}\n{body}");
    }
    text
}

fn integer(part: Reply) -> i64 {
    match part {
        Reply::Int(number) => number,
        other => panic!("no integer: {other:?}"),
    }
}

/// What scripts that break say of themselves. A bug that was planted so clumsily shows nothing.
const BROKEN: [&str; 3] = ["user_script", "compiling script", "must have its place"];

/// Asserts that `check` fails when `line` of the script of `file` is replaced by `instead`.
pub(super) fn caught([file, line, instead]: [&'static str; 3], check: fn()) {
    BUG.set(Some([file, line, instead]));
    let outcome = catch_unwind(AssertUnwindSafe(check));
    BUG.set(None);
    let Err(panic) = outcome else {
        panic!("no test sees that {file} has {instead:?} for {line:?}");
    };
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or_default();
    let broken = BROKEN.iter().find(|word| said.contains(**word));
    assert_eq!(broken, None, "the script broke: {said}");
}
