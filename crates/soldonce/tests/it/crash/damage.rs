//! Damaged copies of a data folder: flipped bits, cut and missing files. Each must be refused at the
//! start, be caught at use or by `verify`, or do no harm; a wrong answer without a word is a failure.
//! In this process, on the ledger itself, because there are hundreds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use soldonce_engine::ledger::sqlite::SqliteOptions;
use soldonce_engine::ledger::sqlite::verify::verify;

use super::cards::create_hall;
use super::draw::Draw;
use super::injected::endless;
use super::load::Worker;
use super::picture::{Questions, picture};
use super::scratch::{Scratch, copy_folder};
use super::server::Server;
use super::{Run, Violation, in_parallel};

/// Flipped bits per file and folder.
const FLIPS: usize = 80;
/// Requests before the damage.
const REQUESTS: usize = 40;
const FRAME_BYTES: u64 = 4_096 + 24;
const WAL_HEAD_BYTES: u64 = 32;
const PAGE_BYTES: u64 = 4_096;
const FILES: [&str; 3] = ["ledger.sqlite", "ledger.sqlite-wal", "high-water"];

/// What is done to one file of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Flip { byte: u64, bit: u8 },
    Zero { page: u64 },
    Cut { bytes: u64 },
    Missing,
}

/// What came of a damaged copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Refused,
    AtUse,
    ByVerify,
    Harmless,
    Silent,
}

/// A folder to be damaged, and what a sound ledger answers from it.
struct Sound {
    folder: PathBuf,
    asked: Questions,
    answers: String,
}

impl Damage {
    fn apply(self, file: &Path) {
        if self == Self::Missing {
            return fs::remove_file(file).unwrap();
        }
        let mut bytes = fs::read(file).unwrap();
        let at = |offset: u64| usize::try_from(offset).unwrap();
        match self {
            Self::Flip { byte, bit } => bytes[at(byte)] ^= 1 << bit,
            Self::Zero { page } => {
                let from = at(page * PAGE_BYTES);
                bytes[from..from + at(PAGE_BYTES)].fill(0);
            }
            Self::Cut { bytes: left } => bytes.truncate(at(left)),
            Self::Missing => {}
        }
        fs::write(file, bytes).unwrap();
    }
}

impl Sound {
    /// A hall with some sales, whose server was killed or closed in order.
    fn make(run: &Run, scratch: &Scratch, end: fn(Server)) -> Vec<Self> {
        let name = format!("sound-{}", fs::read_dir(scratch.join("")).unwrap().count());
        let data = scratch.join(&name);
        let server = Server::start(&data).unwrap();
        let mut client = server.client(&name);
        assert_eq!(client.ask(&create_hall()).unwrap().status, 201);
        let mut worker = Worker::timeless(0, &Draw::new(run.seed));
        let (target, _wait) = endless();
        assert!(worker.requests(&mut client, REQUESTS, &target).is_none());
        drop(client);
        end(server);
        let asked = Questions::from(worker.open);
        let copy = scratch.join(&format!("{name}-read"));
        copy_folder(&data, &copy);
        let answers = picture(&SqliteOptions::new(&copy), &asked)
            .unwrap()
            .unwrap();
        vec![Self {
            folder: data,
            asked,
            answers,
        }]
    }

    /// Damages a copy and looks at what a ledger makes of it.
    fn suffer(&self, options: &SqliteOptions, file: &str, damage: Damage) -> Fate {
        let copy = &options.folder;
        copy_folder(&self.folder, copy);
        damage.apply(&copy.join(file));
        let fate = match picture(options, &self.asked) {
            Err(_) => Fate::Refused,
            Ok(Err(_)) => Fate::AtUse,
            Ok(Ok(answers)) if answers == self.answers => Fate::Harmless,
            Ok(Ok(_)) => match verify(copy, &mut |_| {}) {
                Ok(report) if report.is_clean() => Fate::Silent,
                Ok(_) | Err(_) => Fate::ByVerify,
            },
        };
        if fate != Fate::Silent {
            fs::remove_dir_all(copy).unwrap();
        }
        fate
    }

    /// Every damage to be tried.
    fn plan(&self, run: &Run) -> Vec<(&'static str, Damage)> {
        let mut draw = Draw::new(run.seed);
        let mut plan = Vec::new();
        for file in FILES {
            let bytes = fs::metadata(self.folder.join(file)).map_or(0, |file| file.len());
            plan.push((file, Damage::Missing));
            let Ok(end) = usize::try_from(bytes) else {
                continue;
            };
            for _ in 0..FLIPS * run.times * usize::from(end > 0) {
                let byte = u64::try_from(draw.below(end)).unwrap();
                let bit = u8::try_from(draw.below(8)).unwrap();
                plan.push((file, Damage::Flip { byte, bit }));
            }
            let pages = bytes / PAGE_BYTES;
            if file == "ledger.sqlite" {
                plan.extend((0..pages).flat_map(|page| page_damages(file, page)));
            } else if file == "high-water" {
                plan.extend(
                    (0..bytes)
                        .step_by(9)
                        .map(|bytes| (file, Damage::Cut { bytes })),
                );
            }
        }
        plan.extend(self.cut_log().map(|cut| ("ledger.sqlite-wal", cut)));
        plan
    }

    /// The log cut at every record, and in the middle of it.
    fn cut_log(&self) -> impl Iterator<Item = Damage> {
        let bytes =
            fs::metadata(self.folder.join("ledger.sqlite-wal")).map_or(0, |file| file.len());
        let frames = bytes.saturating_sub(WAL_HEAD_BYTES) / FRAME_BYTES;
        (0..frames).flat_map(|frame| {
            let bytes = WAL_HEAD_BYTES + frame * FRAME_BYTES;
            [
                Damage::Cut { bytes },
                Damage::Cut {
                    bytes: bytes + 1_000,
                },
            ]
        })
    }
}

/// A page that is empty, and a file that ends before it.
fn page_damages(file: &'static str, page: u64) -> [(&'static str, Damage); 2] {
    let bytes = page * PAGE_BYTES;
    [(file, Damage::Zero { page }), (file, Damage::Cut { bytes })]
}

#[test]
fn damage_never_becomes_a_wrong_answer() {
    let run = Run::new("damage");
    let scratch = Scratch::new(&run);
    let mut sound = Sound::make(&run, &scratch, |server| {
        server.kill();
    });
    sound.extend(Sound::make(&run, &scratch, |server| {
        assert!(server.stop().success());
    }));
    let fates = Mutex::new(Vec::new());
    for (number, sound) in sound.iter().enumerate() {
        let plan = sound.plan(&run);
        in_parallel(plan.len(), |at| {
            let (file, damage) = plan[at];
            let copy = scratch.join(&format!("copy-{number}-{at}"));
            let fate = sound.suffer(&SqliteOptions::new(copy), file, damage);
            let mut fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
            fates.push((number, at, file, damage, fate));
        });
    }
    let fates = fates.into_inner().unwrap();
    let silent = fates.iter().filter(|(.., fate)| *fate == Fate::Silent);
    let violations: Vec<Violation> = silent
        .map(|fate| Violation::new("I25", format!("silent-damage {fate:?}")))
        .collect();
    let count = |fate: Fate| fates.iter().filter(|(.., is)| *is == fate).count();
    println!(
        "damage: {} copies: {} refused, {} caught at use, {} by verify, {} harmless, {} silent",
        fates.len(),
        count(Fate::Refused),
        count(Fate::AtUse),
        count(Fate::ByVerify),
        count(Fate::Harmless),
        count(Fate::Silent),
    );
    run.require_none("damaged copies", &violations, &scratch);
}
