//! Readers of a feed: each is a connection that counts frames and notes when they arrived.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use soldonce_clock::{Clock, SystemClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::kit::{Latencies, LatencyUs};
use crate::limits::VIEWER_BUFFER_BYTES;

pub(super) const EVENT: &str = "hall";

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Open streams. Dropping it ends them.
pub(super) struct Watching {
    seen: Arc<Mutex<FeedCounts>>,
    /// The times from the start of a connection to its first byte.
    pub(super) first_bytes: LatencyUs,
    readers: JoinSet<()>,
}

/// What a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Frames,
    /// Each commit, with the time at which it was made.
    Commits,
}

/// What all readers of an event received.
#[derive(Debug, Default)]
pub(super) struct FeedCounts {
    /// When counting began. Commits made before are of another load, whose pace their frame had.
    since: i64,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// Of each frame by its last commit: its first commit, and when the last reader had it. Times are
    /// milliseconds of a day, as the feed says them.
    ends: BTreeMap<u64, (u64, i64)>,
    /// When each commit since then was made, as the reader of every commit found it.
    made: BTreeMap<u64, i64>,
}

impl FeedCounts {
    /// Computes the delays from the oldest commit of each frame to its last reader.
    pub(super) fn delays(&self) -> LatencyUs {
        let mut delays = Latencies::default();
        for (from, got) in self.ends.values() {
            if let Some(made) = self.made.get(from) {
                let millis = u64::try_from((got - made).rem_euclid(DAY_MS)).unwrap_or(0);
                delays.record(Duration::from_millis(millis));
            }
        }
        delays.figures()
    }
}

impl Watching {
    /// Opens so many streams at once, by turns at each of these servers with its key, and at the first one more of
    /// every commit. Their reading goes on in this runtime.
    pub(super) async fn open(
        servers: &[(SocketAddr, &str)],
        viewers: u32,
        runtime: &Handle,
    ) -> anyhow::Result<Self> {
        let seen: Arc<Mutex<FeedCounts>> = Arc::default();
        let mut opening = JoinSet::new();
        for (number, (address, key)) in (0..=viewers).zip(servers.iter().cycle()) {
            let reads = if number == 0 {
                Reads::Commits
            } else {
                Reads::Frames
            };
            opening.spawn_on(open(*address, (*key).to_owned(), reads), runtime);
        }
        let (mut readers, mut first_bytes) = (JoinSet::new(), Latencies::default());
        while let Some(opened) = opening.join_next().await {
            let (stream, took, reads) = opened?.context("a viewer got no stream")?;
            first_bytes.record(took);
            readers.spawn_on(read(stream, Arc::clone(&seen), reads), runtime);
        }
        Ok(Self {
            seen,
            first_bytes: first_bytes.figures(),
            readers,
        })
    }

    /// Takes what was received since the last call.
    ///
    /// # Errors
    /// When a viewer lost its stream: the rest would look cheaper than all.
    pub(super) fn take(&mut self) -> anyhow::Result<FeedCounts> {
        let lost = std::iter::from_fn(|| self.readers.try_join_next()).count();
        anyhow::ensure!(lost == 0, "{lost} viewers lost their stream");
        let next = FeedCounts {
            since: now_ms(),
            ..FeedCounts::default()
        };
        Ok(std::mem::replace(&mut *lock(&self.seen), next))
    }
}

/// Reads the time as the feed says it, milliseconds of a day.
fn now_ms() -> i64 {
    SystemClock.wall_ms().rem_euclid(DAY_MS)
}

pub(super) fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn open(
    address: SocketAddr,
    key: String,
    reads: Reads,
) -> std::io::Result<(TcpStream, Duration, Reads)> {
    let began = SystemClock.boot();
    let part = match reads {
        Reads::Frames => "feed",
        Reads::Commits => "feed?each=true",
    };
    let stream = ask((address, &key), part, "").await?;
    stream.readable().await?;
    let took = SystemClock.boot().since(began);
    let mut head = [0; 12];
    let length = stream.peek(&mut head).await?;
    if head.get(..length) != Some(b"HTTP/1.1 200") {
        let head = String::from_utf8_lossy(&head);
        return Err(std::io::Error::other(format!("answered `{head}`")));
    }
    Ok((stream, took, reads))
}

/// Reads a stream to its end, and notes its messages in `seen`.
async fn read(stream: TcpStream, seen: Arc<Mutex<FeedCounts>>, reads: Reads) {
    let note = |message: &str| {
        let now = now_ms();
        note(&mut lock(&seen), message, now, reads);
        true
    };
    // A stream that breaks has ended too: who watches counts it as lost.
    read_messages(stream, note).await.unwrap_or_default();
}

/// Sends a GET for a part of the event, with more header fields.
pub(super) async fn ask(
    (address, key): (SocketAddr, &str),
    part: &str,
    more: &str,
) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET /v1/events/{EVENT}/{part} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Hands over each message of a feed, until its end or until no more are wanted.
pub(super) async fn read_messages(
    mut stream: TcpStream,
    mut wants_more: impl FnMut(&str) -> bool,
) -> std::io::Result<()> {
    let mut unread = Vec::with_capacity(VIEWER_BUFFER_BYTES);
    while stream.read_buf(&mut unread).await? > 0 {
        let mut begin = 0;
        while let Some(rest) = unread.get(begin..)
            && let Some(length) = message_length(rest)
        {
            let message = rest.get(..length).unwrap_or_default();
            if !wants_more(std::str::from_utf8(message).unwrap_or_default()) {
                return Ok(());
            }
            begin += length;
        }
        unread.drain(..begin);
    }
    Ok(())
}

/// Returns how many bytes the first message has, with the empty line that ends it; None if it is not whole. Line by
/// line: what a viewer spends on a byte, the server on the same cores lacks.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while rest.skip_until(b'\n').ok()? > 0 {
        if rest.first() == Some(&b'\n') {
            return Some(bytes.len() - rest.len() + 1);
        }
    }
    None
}

pub(super) fn number_after(message: &str, text: &str) -> Option<u64> {
    let (_, rest) = message.split_once(text)?;
    rest.split([',', '}', '\n']).next()?.parse().ok()
}

/// Parses the first and the last commit of a frame; None if the message is no frame.
fn commits(message: &str) -> Option<(u64, u64)> {
    let mut lines = message.lines();
    let data = lines.find_map(|line| line.strip_prefix("data: {\"from\":"))?;
    let (from, data) = data.split_once(',')?;
    let (seq, _) = data.strip_prefix("\"seq\":")?.split_once(',')?;
    from.parse().ok().zip(seq.parse().ok())
}

fn note(seen: &mut FeedCounts, message: &str, now: i64, reads: Reads) {
    let Some((from, seq)) = commits(message) else {
        return;
    };
    if reads == Reads::Commits {
        let at = message.split_once("\"at\":\"");
        let at = at.and_then(|(_, at)| ms_of_day(at.split('"').next()?));
        // Less than half a day later, over midnight too.
        let at = at.filter(|at| (at - seen.since).rem_euclid(DAY_MS) < DAY_MS / 2);
        seen.made.extend(at.map(|at| (seq, at)));
        return;
    }
    seen.frames += 1;
    seen.bytes += u64::try_from(message.len()).unwrap_or(0);
    // Frames of several servers may begin with different commits.
    let (first, got) = seen.ends.entry(seq).or_insert((from, now));
    *first = from.min(*first);
    *got = now.max(*got);
}

/// Parses the milliseconds of the day of a time as the API writes it.
fn ms_of_day(at: &str) -> Option<i64> {
    let (_, time) = at.split_once('T')?;
    let mut parts = time.strip_suffix('Z')?.split([':', '.']);
    let mut next = || parts.next()?.parse::<i64>().ok();
    let (hours, minutes, seconds, millis) = (next()?, next()?, next()?, next()?);
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(seq: u64, at: &str) -> String {
        format!("id: {seq}\ndata: {{\"from\":{seq},\"seq\":{seq},\"at\":\"2026-12-01T{at}Z\"}}\n\n")
    }

    #[test]
    fn frames_and_commits_are_counted_and_their_delay_is_of_the_oldest() {
        let noon = 12 * 60 * 60 * 1_000;
        let mut seen = FeedCounts {
            since: noon,
            ..FeedCounts::default()
        };
        for (seq, at) in [(7, "12:00:00.500"), (8, "12:00:00.550")] {
            note(&mut seen, &commit(seq, at), 0, Reads::Commits);
        }
        let frame = "id: 8\ndata: {\"from\":7,\"seq\":8,\"at\":\"2026-12-01T12:00:00.550Z\"}\n\n";
        for got in [600, 620, 610] {
            note(&mut seen, frame, noon + got, Reads::Frames);
        }
        note(&mut seen, ": still here\n\n", noon, Reads::Frames);
        assert_eq!((seen.frames, seen.delays().max / 1_000), (3, 120));
    }

    #[test]
    fn a_message_ends_with_its_empty_line() {
        for (bytes, length) in [
            ("", None),
            ("id: 8\ndata: {}\n", None),
            ("retry: 1\r\n\r\n", None),
            ("\n\n", Some(2)),
            ("\r\nF\r\nid: 8\ndata: {}\n\n\r\n", Some(21)),
            (": still here\n\n: still here\n\n", Some(14)),
        ] {
            assert_eq!(message_length(bytes.as_bytes()), length, "{bytes:?}");
        }
    }

    #[test]
    fn a_frame_that_began_before_the_count_has_no_delay() {
        let mut seen = FeedCounts {
            since: DAY_MS - 100,
            ..FeedCounts::default()
        };
        for (seq, at) in [
            (7, "23:59:59.899"),
            (8, "23:59:59.900"),
            (9, "00:00:00.000"),
        ] {
            note(&mut seen, &commit(seq, at), 0, Reads::Commits);
        }
        assert_eq!(seen.made.keys().collect::<Vec<_>>(), [&8, &9]);
        let begun = "id: 8\ndata: {\"from\":7,\"seq\":8,\"at\":\"2026-12-01T23:59:59.900Z\"}\n\n";
        note(&mut seen, begun, 500, Reads::Frames);
        note(&mut seen, &commit(9, "00:00:00.000"), 20, Reads::Frames);
        assert_eq!((seen.frames, seen.delays().max / 1_000), (2, 20));
    }
}
