//! Random calls of the scripts compared with a model of twenty lines: every answer is the model's, and so is
//! what stands in the zone afterwards.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::bench::{Aim, Bench, CLAIM_MS, KEEP_MS, NoteArgs};

#[derive(Clone, Debug)]
enum Op {
    Try(u64, Aim, BTreeSet<u32>),
    Note(Vec<NoteArgs>),
    Drop(u64, BTreeSet<u32>),
    Wait(i64),
}

fn op() -> impl Strategy<Value = Op> {
    let who = 1..4_u64;
    let units = || prop::collection::btree_set(0..6_u32, 1..4);
    let aim = prop_oneof![3 => Just(Aim::Claim), 1 => Just(Aim::Look)];
    let kind = prop::sample::select(vec!['h', 's', 'f']);
    let left = prop::sample::select(vec![0, 1, 1_500, 60_000]);
    let told = (kind, 0..6_u32, 0..12_u64, left, 1..4_u64);
    prop_oneof![
        5 => (who.clone(), aim, units()).prop_map(|(who, aim, units)| Op::Try(who, aim, units)),
        3 => prop::collection::vec(told, 1..4).prop_map(Op::Note),
        2 => (who, units()).prop_map(|(who, units)| Op::Drop(who, units)),
        2 => (0..2_500_i64).prop_map(Op::Wait),
    ]
}

#[derive(Clone, Copy)]
struct Entry {
    kind: char,
    version: u64,
    ends_ms: i64,
    who: u64,
}

#[derive(Default)]
struct Model {
    entries: BTreeMap<u32, Entry>,
    now_ms: i64,
}

impl Model {
    fn believed(&self, unit: u32) -> Option<Entry> {
        let entry = self.entries.get(&unit).copied();
        entry.filter(|entry| entry.kind != 'f' && entry.ends_ms > self.now_ms)
    }

    fn version(&self, unit: u32) -> u64 {
        self.entries.get(&unit).map_or(0, |entry| entry.version)
    }

    fn try_as(&mut self, who: u64, aim: Aim, units: &BTreeSet<u32>) -> Vec<i64> {
        let is_own = |entry: Entry| entry.kind == 'h' && entry.who == who;
        if units
            .iter()
            .any(|unit| self.believed(*unit).is_some_and(is_own))
        {
            return vec![2];
        }
        let mut conflicts = vec![0];
        for (index, unit) in (1..).zip(units) {
            if let Some(entry) = self.believed(*unit)
                && (entry.kind != 'c' || entry.who != who)
            {
                let (kind, left) = (
                    i64::from(u32::from(entry.kind)),
                    entry.ends_ms - self.now_ms,
                );
                conflicts.extend([index, kind, left, i64::try_from(entry.version).unwrap()]);
            }
        }
        if conflicts.len() > 1 {
            return conflicts;
        }
        if aim == Aim::Look {
            return vec![1, 0];
        }
        for unit in units {
            let entry = Entry {
                kind: 'c',
                version: self.version(*unit),
                ends_ms: self.now_ms + CLAIM_MS,
                who,
            };
            self.entries.insert(*unit, entry);
        }
        vec![1, CLAIM_MS]
    }

    fn note(&mut self, (kind, unit, version, left_ms, who): NoteArgs) -> i64 {
        if version < self.version(unit) {
            return 0;
        }
        let ends_ms = self.now_ms + left_ms.min(KEEP_MS);
        let entry = Entry {
            kind,
            version,
            ends_ms,
            who,
        };
        self.entries.insert(unit, entry);
        1
    }

    fn drop_of(&mut self, who: u64, unit: u32) -> i64 {
        match self.entries.get_mut(&unit) {
            Some(entry) if entry.kind == 'c' && entry.who == who => {
                (entry.kind, entry.ends_ms, entry.who) = ('f', 0, 0);
                1
            }
            Some(_) | None => 0,
        }
    }

    fn step(&mut self, op: &Op) -> Vec<i64> {
        match op {
            Op::Try(who, aim, units) => self.try_as(*who, *aim, units),
            Op::Note(notes) => notes.iter().map(|note| self.note(*note)).collect(),
            Op::Drop(who, units) => units.iter().map(|unit| self.drop_of(*who, *unit)).collect(),
            Op::Wait(ms) => {
                self.now_ms += ms;
                Vec::new()
            }
        }
    }
}

fn step(zone: &Bench, op: &Op) -> Vec<i64> {
    match op {
        Op::Try(who, aim, units) => zone.try_as(*who, *aim, units.iter().copied()).unwrap(),
        Op::Note(notes) => zone.note_all(notes).unwrap(),
        Op::Drop(who, units) => zone.drop_of(*who, &units.iter().copied().collect::<Vec<_>>()),
        Op::Wait(ms) => {
            zone.advance(*ms);
            Vec::new()
        }
    }
}

#[test]
pub(super) fn the_scripts_do_what_the_model_does() {
    let zone = Bench::new();
    let mut runner = TestRunner::new(Config {
        cases: 60,
        // The server keeps its data in between, so a case cannot be told by itself.
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let ops = prop::collection::vec(op(), 1..50);
    let ran = runner.run(&ops, |ops| {
        zone.redis.cli(&["FLUSHALL"]).unwrap();
        let mut model = Model {
            now_ms: zone.now_ms(),
            ..Model::default()
        };
        for op in &ops {
            prop_assert_eq!(step(&zone, op), model.step(op), "{:?}", op);
        }
        for (unit, entry) in &model.entries {
            let Entry {
                kind,
                version,
                ends_ms,
                who,
            } = entry;
            prop_assert_eq!(
                zone.entry(*unit),
                format!("{kind}|{version}|{ends_ms}|{who}")
            );
        }
        Ok(())
    });
    ran.unwrap_or_else(|why| panic!("{why}"));
}
