//! What a server did to its files, read from strace, and what a power cut would leave of it. A
//! file's durable bytes are those at its last finished sync; of what came after, anything may be
//! there. A write counts from its start; a sync counts from its end, for what was written before its
//! start, because another thread may write meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::draw::Draw;

/// Smaller than this a disk writes all or nothing.
const SECTOR_BYTES: usize = 512;

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    Written {
        file: String,
        at: usize,
        bytes: Vec<u8>,
    },
    Cut {
        file: String,
        length: usize,
    },
    /// A sync began on a thread.
    Syncing {
        file: String,
        thread: String,
    },
    /// The sync of that thread ended.
    Synced {
        file: String,
        thread: String,
    },
    /// An answer went out to the client.
    Answered,
}

/// Reads what strace wrote with `-f -xx -y`, for the files named.
pub(crate) fn parse(text: &str, files: &[&str]) -> Vec<Happened> {
    let mut happened = Vec::new();
    let mut syncing: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let synced = |file| Happened::Synced {
            file,
            thread: thread.to_owned(),
        };
        if call.contains(r#""\x48\x54\x54\x50\x2f"#) {
            happened.push(Happened::Answered);
        } else if call.starts_with("<... fsync resumed>") || call.starts_with("<... fdatasync") {
            happened.extend(syncing.remove(thread).map(synced));
        } else if let Some((name, file, rest)) = on_file(call, files) {
            let is_sync = ["fsync", "fdatasync"].contains(&name);
            happened.extend(begun(name, file.clone(), rest, thread));
            if is_sync && rest.contains("<unfinished") {
                syncing.insert(thread, file);
            } else if is_sync {
                happened.push(synced(file));
            }
        }
    }
    happened
}

/// What the start of a call means for a file.
fn begun(name: &str, file: String, rest: &str, thread: &str) -> Option<Happened> {
    match name {
        "fsync" | "fdatasync" => {
            let thread = thread.to_owned();
            Some(Happened::Syncing { file, thread })
        }
        "pwrite64" => written(file, rest),
        "ftruncate" => {
            let length = rest.trim_start_matches(", ").split([')', ' ']).next();
            let length = length.and_then(|length| length.parse().ok()).unwrap();
            Some(Happened::Cut { file, length })
        }
        _ => None,
    }
}

/// Call, file name and the rest of a call whose first argument is a file of the folder.
fn on_file<'a>(call: &'a str, files: &[&str]) -> Option<(&'a str, String, &'a str)> {
    let (name, rest) = call.split_once('(')?;
    let (_, rest) = rest.split_once('<')?;
    let (path, rest) = rest.split_once('>')?;
    let path = String::from_utf8(unescape(path)?).ok()?;
    let file = Path::new(&path).file_name()?.to_str()?;
    files.contains(&file).then(|| (name, file.to_owned(), rest))
}

fn written(file: String, rest: &str) -> Option<Happened> {
    let (bytes, rest) = rest.strip_prefix(", \"")?.split_once('"')?;
    let mut numbers = rest
        .trim_start_matches(", ")
        .split([',', ')', ' '])
        .filter(|n| !n.is_empty());
    let length: usize = numbers.next()?.parse().ok()?;
    let at = numbers.next()?.parse().ok()?;
    let bytes = unescape(bytes)?;
    assert_eq!(bytes.len(), length, "strace cut a write");
    Some(Happened::Written { file, at, bytes })
}

/// `\x61\x62` > `ab`.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let digits = text.split("\\x").skip(1);
    digits
        .map(|digits| u8::from_str_radix(digits, 16).ok())
        .collect()
}

/// How much of what was not synced is there after the power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Everything,
    /// Some of the writes.
    Some,
    /// Some of the sectors.
    Torn,
}

/// A disk with its cache.
pub(crate) struct Disk(BTreeMap<String, Stored>);

struct Stored {
    durable: Vec<u8>,
    waiting: Vec<Happened>,
    /// By thread whose sync is under way: how many of those that wait it covers.
    covered: BTreeMap<String, usize>,
}

impl Disk {
    /// A folder as it lies there, all of it durable.
    pub(crate) fn of(folder: &Path, files: &[&str]) -> Self {
        let read = |file: &&str| {
            let durable = fs::read(folder.join(file)).unwrap_or_default();
            let stored = Stored {
                durable,
                waiting: Vec::new(),
                covered: BTreeMap::new(),
            };
            ((*file).to_owned(), stored)
        };
        Self(files.iter().map(read).collect())
    }

    pub(crate) fn take(&mut self, happened: &Happened) {
        match happened {
            Happened::Written { file, .. } | Happened::Cut { file, .. } => {
                self.stored(file).waiting.push(happened.clone());
            }
            Happened::Syncing { file, thread } => {
                let stored = self.stored(file);
                stored.covered.insert(thread.clone(), stored.waiting.len());
            }
            Happened::Synced { file, thread } => self.stored(file).sync_ended(thread),
            Happened::Answered => {}
        }
    }

    fn stored(&mut self, file: &str) -> &mut Stored {
        self.0.get_mut(file).unwrap()
    }

    /// Writes the files as a power cut might leave them.
    pub(crate) fn cut_power(&self, rest: Rest, draw: &mut Draw, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (name, stored) in &self.0 {
            let mut bytes = stored.durable.clone();
            for change in &stored.waiting {
                change.reach(rest, &mut bytes, draw);
            }
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

impl Stored {
    fn sync_ended(&mut self, thread: &str) {
        let covered = self.covered.remove(thread).unwrap_or(0);
        for change in self.waiting.drain(..covered) {
            change.apply(&mut self.durable);
        }
        for other in self.covered.values_mut() {
            *other = other.saturating_sub(covered);
        }
    }
}

impl Happened {
    /// What of a change that was not synced reaches the disk.
    fn reach(&self, rest: Rest, to: &mut Vec<u8>, draw: &mut Draw) {
        let reaches = match rest {
            Rest::Nothing => false,
            Rest::Everything => true,
            Rest::Some => draw.one_in(2),
            Rest::Torn => return self.apply_torn(to, draw),
        };
        if reaches {
            self.apply(to);
        }
    }

    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Written { at, bytes, .. } => {
                let end = at + bytes.len();
                to.resize(to.len().max(end), 0);
                to[*at..end].copy_from_slice(bytes);
            }
            Self::Cut { length, .. } => to.resize(*length, 0),
            Self::Syncing { .. } | Self::Synced { .. } | Self::Answered => {}
        }
    }

    /// Some of its sectors, which begin at multiples of their size in the file.
    fn apply_torn(&self, to: &mut Vec<u8>, draw: &mut Draw) {
        let Self::Written { file, at, bytes } = self else {
            if draw.one_in(2) {
                self.apply(to);
            }
            return;
        };
        let mut from = 0;
        while from < bytes.len() {
            let sector_end = (at + from) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES;
            let end = bytes.len().min(sector_end - at);
            if draw.one_in(2) {
                let bytes = bytes[from..end].to_vec();
                Self::Written {
                    file: file.clone(),
                    at: at + from,
                    bytes,
                }
                .apply(to);
            }
            from = end;
        }
    }
}
