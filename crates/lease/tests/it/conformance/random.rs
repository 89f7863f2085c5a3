//! Random commands to the backend under test and to the oracle: both must answer alike. Times are
//! whole units, lives and caps end between them, so that small delays decide nothing.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{
    Config, FailurePersistence, FileFailurePersistence, TestCaseError, TestRunner,
};
use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Memory, Names, ReleaseReply, RenewReply, State,
};
use soldonce_lease::{FencingToken, ManualClock, Name};

use super::{Bench, owner};
use crate::requests;

/// One step of a sequence.
#[derive(Clone, Debug)]
enum Op {
    Acquire {
        names: Which,
        owner: u64,
        ttl: u32,
        cap: u32,
    },
    /// By the token of the grant with this number.
    Renew {
        names: Which,
        owner: u64,
        grant: usize,
    },
    Release {
        names: Which,
        owner: u64,
        grant: Option<usize>,
    },
    Inspect(&'static str),
    Advance(u32),
}

/// Names of a request: one alone, some of a group, or one of those.
#[derive(Clone, Debug)]
enum Which {
    Alone(&'static str),
    Grouped(Vec<&'static str>),
    /// One of them, whichever is free.
    Any(Vec<&'static str>),
}

const TEXTS: [&str; 3] = ["a", "b", "c"];

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let text = || prop::sample::select(TEXTS.to_vec());
    let which = || {
        prop_oneof![
            text().prop_map(Which::Alone),
            prop::sample::subsequence(TEXTS.to_vec(), 1..=3).prop_map(Which::Grouped),
            prop::sample::subsequence(TEXTS.to_vec(), 1..=3).prop_map(Which::Any),
        ]
    };
    let acquire =
        (which(), 1..4_u64, 1..4_u32, 2..7_u32).prop_map(|(names, owner, ttl, cap)| Op::Acquire {
            names,
            owner,
            ttl,
            cap: cap.max(ttl),
        });
    let renew = (which(), 1..4_u64, 0..6_usize).prop_map(|(names, owner, grant)| Op::Renew {
        names,
        owner,
        grant,
    });
    let release =
        (which(), 1..4_u64, prop::option::of(0..6_usize)).prop_map(|(names, owner, grant)| {
            Op::Release {
                names,
                owner,
                grant,
            }
        });
    let op = prop_oneof![
        4 => acquire,
        2 => renew,
        2 => release,
        1 => text().prop_map(Op::Inspect),
        1 => (1..3_u32).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..24)
}

/// Runs random sequences; a failing one is shrunk and saved beside this file.
pub(crate) async fn agrees_with_the_oracle(bench: &dyn Bench) {
    compare(
        bench,
        Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
    )
    .await;
}

/// The same, with the failing sequence saved where `saved` says.
pub(super) async fn compare(bench: &dyn Bench, saved: Option<Box<dyn FailurePersistence>>) {
    let (to_bench, mut sequences) = tokio::sync::mpsc::channel::<Vec<Op>>(1);
    let (to_runner, answers) = mpsc::channel::<Result<(), String>>();
    let config = Config {
        cases: bench.cases(),
        failure_persistence: saved,
        source_file: Some(file!()),
        ..Config::default()
    };
    // Proptest blocks, and the bench lives on this runtime: each keeps its own thread.
    let runner = std::thread::spawn(move || {
        TestRunner::new(config).run(&ops(), |sequence| {
            to_bench.blocking_send(sequence).unwrap();
            answers.recv().unwrap().map_err(TestCaseError::fail)
        })
    });
    let mut case = 0;
    while let Some(sequence) = sequences.recv().await {
        case += 1;
        to_runner.send(run(bench, case, &sequence).await).unwrap();
    }
    if let Err(error) = runner.join().unwrap() {
        panic!("the backend differs from the oracle: {error}");
    }
}

/// The oracle and what both sides have granted, in order.
struct Both<'a> {
    bench: &'a dyn Bench,
    oracle: Memory,
    clock: ManualClock,
    case: u32,
    oracle_tokens: Vec<FencingToken>,
    bench_tokens: Vec<FencingToken>,
}

async fn run(bench: &dyn Bench, case: u32, sequence: &[Op]) -> Result<(), String> {
    let clock = ManualClock::at(0);
    let oracle = Memory::new(Arc::new(clock.clone()));
    oracle.restore(State::default());
    let mut both = Both {
        bench,
        oracle,
        clock,
        case,
        oracle_tokens: Vec::new(),
        bench_tokens: Vec::new(),
    };
    for (step, op) in sequence.iter().enumerate() {
        let (expected, seen) = both.step(op).await;
        if expected != seen {
            return Err(format!(
                "step {step}, {op:?}: the oracle says {expected}, the backend {seen}"
            ));
        }
    }
    Ok(())
}

impl Both<'_> {
    /// Answers of the oracle and of the backend, in comparable words.
    async fn step(&mut self, op: &Op) -> (String, String) {
        match op {
            Op::Acquire {
                names,
                owner: n,
                ttl,
                cap,
            } => {
                let command = Acquire {
                    cap: Some(self.life(*cap)),
                    ..self.ask(names, *n, *ttl)
                };
                let seen = self.bench.backend().acquire(&command).await;
                let expected = self.oracle.acquire(&command).await;
                (
                    acquired(&expected, &mut self.oracle_tokens),
                    acquired(&seen, &mut self.bench_tokens),
                )
            }
            Op::Renew {
                names,
                owner,
                grant,
            } => self.renew(names, *owner, *grant).await,
            Op::Release {
                names,
                owner,
                grant,
            } => self.release(names, *owner, *grant).await,
            Op::Inspect(text) => self.inspect(text).await,
            Op::Advance(units) => {
                let span = self.unit() * *units;
                self.bench.advance(span).await;
                self.clock.advance(span);
                (String::new(), String::new())
            }
        }
    }

    async fn renew(&mut self, names: &Which, n: u64, grant: usize) -> (String, String) {
        let ask = self.ask(names, n, 2);
        let (theirs, ours) = (&self.bench_tokens, &self.oracle_tokens);
        let seen = requests::renew(self.bench.backend(), &ask, token(theirs, grant)).await;
        let expected = requests::renew(&self.oracle, &ask, token(ours, grant)).await;
        (
            renewed(&expected, &self.oracle_tokens),
            renewed(&seen, &self.bench_tokens),
        )
    }

    async fn release(&mut self, names: &Which, n: u64, grant: Option<usize>) -> (String, String) {
        let ask = self.ask(names, n, 2);
        let theirs = grant.map(|grant| token(&self.bench_tokens, grant));
        let ours = grant.map(|grant| token(&self.oracle_tokens, grant));
        let seen = requests::release(self.bench.backend(), &ask, theirs).await;
        let expected = requests::release(&self.oracle, &ask, ours).await;
        (
            released(&expected, &self.oracle_tokens),
            released(&seen, &self.bench_tokens),
        )
    }

    async fn inspect(&mut self, text: &str) -> (String, String) {
        let name = self.name(text);
        let seen = self.bench.backend().inspect(None, &name).await.unwrap();
        let expected = self.oracle.inspect(None, &name).await.unwrap();
        let word = |token, tokens: &[FencingToken]| number(token, tokens);
        (
            format!(
                "{:?}",
                expected.map(|holder| word(holder.token, &self.oracle_tokens))
            ),
            format!(
                "{:?}",
                seen.map(|holder| word(holder.token, &self.bench_tokens))
            ),
        )
    }

    /// Cases share a backend and differ by their names and owners.
    fn name(&self, text: &str) -> Name {
        super::name(&format!("{}-{text}", self.case))
    }

    /// An owner proves one grant, so each set of names has its own.
    fn owner(&self, names: &Which, n: u64) -> soldonce_lease::Owner {
        let texts = match names {
            Which::Alone(text) => std::slice::from_ref(text),
            Which::Grouped(texts) | Which::Any(texts) => texts.as_slice(),
        };
        let mut set = match names {
            Which::Alone(_) => 0,
            Which::Grouped(_) => 1,
            Which::Any(_) => 2,
        };
        for text in TEXTS {
            set = set * 2 + u64::from(texts.contains(&text));
        }
        owner(u64::from(self.case) * 1_000 + set * 10 + n)
    }

    fn ask(&self, names: &Which, n: u64, ttl: u32) -> Acquire {
        requests::ask(self.names(names), self.owner(names, n), self.life(ttl))
    }

    fn names(&self, which: &Which) -> Names {
        match which {
            Which::Alone(text) => Names::one(self.name(text)),
            Which::Grouped(texts) => {
                let names = texts.iter().map(|text| self.name(text)).collect();
                Names::of_group(self.name("hall"), names)
            }
            Which::Any(texts) => {
                let names = texts.iter().map(|text| self.name(text)).collect();
                Names::any_of(self.name("hall"), names)
            }
        }
    }

    fn unit(&self) -> Duration {
        self.bench.ttl() / 2
    }

    /// Ends between two units.
    fn life(&self, units: u32) -> Duration {
        self.unit() / 2 * (2 * units - 1)
    }
}

/// The token of the grant with this number, or one that was never given.
fn token(tokens: &[FencingToken], grant: usize) -> FencingToken {
    let unknown = || FencingToken::from_parts(0, u32::MAX).unwrap();
    tokens.get(grant).copied().unwrap_or_else(unknown)
}

/// Which grant of the sequence a token belongs to.
fn number(token: FencingToken, tokens: &[FencingToken]) -> String {
    let same = |known: &FencingToken| known.number() == token.number();
    format!("{:?}", tokens.iter().position(same))
}

fn acquired(reply: &AcquireReply, tokens: &mut Vec<FencingToken>) -> String {
    match reply {
        AcquireReply::Granted {
            picked,
            token,
            again,
            ..
        } => {
            if !again {
                tokens.push(*token);
            }
            let number = number(*token, tokens);
            format!("granted {number} again {again}, {picked:?}")
        }
        AcquireReply::Refused(refusal) => {
            let mut held: Vec<_> = refusal
                .conflicts
                .iter()
                .map(|held| format!("{} by {}", held.name, number(held.token, tokens)))
                .collect();
            held.sort_unstable();
            format!("refused {held:?}")
        }
        other => format!("{other:?}"),
    }
}

fn renewed(reply: &RenewReply, tokens: &[FencingToken]) -> String {
    match reply {
        RenewReply::Renewed { .. } => "renewed".to_owned(),
        RenewReply::Gone | RenewReply::Capped => "gone".to_owned(),
        RenewReply::Taken { by } => format!("taken by {}", number(*by, tokens)),
        RenewReply::Failed(error) => format!("failed {error}"),
    }
}

fn released(reply: &ReleaseReply, tokens: &[FencingToken]) -> String {
    match reply {
        ReleaseReply::Released => "released".to_owned(),
        ReleaseReply::Gone => "gone".to_owned(),
        ReleaseReply::Taken { by } => format!("taken by {}", number(*by, tokens)),
        ReleaseReply::Failed(error) => format!("failed {error}"),
    }
}
