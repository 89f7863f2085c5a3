//! What a connection is doing, told by the connection and read by the watch; and what the watch
//! orders it to do. All of it is a few atomics, so that a request pays for no timer.
//!
//! hyper's own header timeout makes and drops a boxed timer at every request, cannot tell an idle
//! connection from a slow head, and does not run while the protocol version is still unknown.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use futures_util::task::AtomicWaker;

/// What an HTTP/2 client with prior knowledge says first; hyper-util's first read asks for its length.
pub(crate) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The type of the frame that begins a request (RFC 9113, 6.2).
const HTTP2_HEADERS: u8 = 1;

/// A body makes progress with each block of so many bytes. One that comes a few bytes at a time
/// counts as withheld.
const BODY_BLOCK_BYTES: u64 = 1_024;

/// Shared by one connection and the watch. Only hints: no other memory is published through it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    requests: AtomicU64,
    in_flight: AtomicU32,
    /// Requests in flight whose bodies have not come.
    bodies_awaited: AtomicU32,
    /// Bytes that came of bodies.
    body_bytes: AtomicU64,
    head_began: AtomicBool,
    /// Bytes that came of [`HTTP2_PREFACE`]; more than it has once another byte came.
    preface: AtomicUsize,
    frames: Mutex<Frames>,
    write_blocked: AtomicBool,
    writes_unblocked: AtomicU64,
    order: AtomicU8,
    waker: AtomicWaker,
}

/// What a connection is waiting for. Two equal phases at two looks mean that nothing moved between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// For a request's head, after that many requests.
    Head(u64),
    /// For the next request or the end, after that many requests.
    Idle(u64),
    /// For the bodies of all that is in flight, after that many requests and blocks of bodies.
    Body(u64, u64),
    /// For a handler.
    Busy,
    /// For the peer to read, after it did so that many times.
    WriteBlocked(u64),
}

/// What the watch tells a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on.
    Serve,
    /// Finish what is in flight, take nothing more.
    Close,
    /// End now.
    Cut,
}

impl Activity {
    /// Tells what the connection waits for. One that never sent a request waits for a head from its
    /// first moment, except for HTTP/2, where a client may connect long before it begins to ask.
    pub(crate) fn phase(&self) -> Phase {
        let requests = self.requests.load(Ordering::Relaxed);
        if self.write_blocked.load(Ordering::Relaxed) {
            return Phase::WriteBlocked(self.writes_unblocked.load(Ordering::Relaxed));
        }
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        if in_flight > 0 && self.bodies_awaited.load(Ordering::Relaxed) >= in_flight {
            let blocks = self.body_bytes.load(Ordering::Relaxed) / BODY_BLOCK_BYTES;
            return Phase::Body(requests, blocks);
        }
        if in_flight > 0 {
            return Phase::Busy;
        }
        let is_first = requests == 0 && !self.is_http2();
        if is_first || self.head_began.load(Ordering::Relaxed) {
            Phase::Head(requests)
        } else {
            Phase::Idle(requests)
        }
    }

    /// Tells whether the whole preface of HTTP/2 has come.
    fn is_http2(&self) -> bool {
        self.preface.load(Ordering::Relaxed) == HTTP2_PREFACE.len()
    }

    /// Tells whether no request is in flight.
    pub(crate) fn is_without_requests(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0
    }

    /// Gives an order and wakes the connection. Orders only get stricter.
    pub(crate) fn give(&self, order: Verdict) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.waker.wake();
    }

    /// Returns the order in force and registers `waker`, which is woken when it changes.
    pub(crate) fn order(&self, waker: &Waker) -> Verdict {
        self.waker.register(waker);
        match self.order.load(Ordering::Acquire) {
            0 => Verdict::Serve,
            1 => Verdict::Close,
            _ => Verdict::Cut,
        }
    }

    /// Notes bytes that were read: while no request is in flight they begin the next one's head. On HTTP/2 other
    /// frames may come, and the first head alone is waited for less long than a silence may last.
    pub(crate) fn note_read(&self, bytes: &[u8]) {
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            return;
        }
        let is_first = self.requests.load(Ordering::Relaxed) == 0;
        if self.is_http2() {
            if is_first && crate::lock(&self.frames).begin_head(bytes) {
                self.head_began.store(true, Ordering::Relaxed);
            }
            return;
        }
        if is_first {
            self.note_preface(bytes);
        }
        self.head_began.store(!self.is_http2(), Ordering::Relaxed);
    }

    /// Matches first bytes, which may come one by one, with the preface. No read goes beyond it.
    fn note_preface(&self, bytes: &[u8]) {
        let before = self.preface.load(Ordering::Relaxed);
        let Some(rest) = HTTP2_PREFACE.get(before..).filter(|rest| !rest.is_empty()) else {
            return;
        };
        let after = if rest.starts_with(bytes) {
            before + bytes.len()
        } else {
            HTTP2_PREFACE.len() + 1
        };
        self.preface.store(after, Ordering::Relaxed);
    }

    /// Adds the length of a part of a body that came.
    pub(crate) fn note_body(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.body_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that the peer takes bytes. A load from the cache is cheaper than a store.
    pub(crate) fn note_write(&self) {
        if self.write_blocked.load(Ordering::Relaxed) {
            self.write_blocked.store(false, Ordering::Relaxed);
            self.writes_unblocked.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that the peer takes no bytes.
    pub(crate) fn note_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }
}

/// The frames of HTTP/2 up to the first head (RFC 9113, 4.1).
#[derive(Debug, Default)]
struct Frames {
    /// What came of a frame before its payload.
    begun: Vec<u8>,
    /// Bytes of its payload that are still to come.
    payload: usize,
}

impl Frames {
    /// Takes bytes that were read. Returns whether a head begins in them.
    fn begin_head(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if self.payload > 0 {
                self.payload -= 1;
                continue;
            }
            self.begun.push(*byte);
            if self.begun.get(3) == Some(&HTTP2_HEADERS) {
                return true;
            }
            if let &[a, b, c, _, _, _, _, _, _] = self.begun.as_slice() {
                self.payload = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.begun.clear();
            }
        }
        false
    }
}

/// One request, from its head to the last byte of its answer's body.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl InFlight {
    pub(crate) fn begin(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.in_flight.fetch_add(1, Ordering::Relaxed);
        activity.head_began.store(false, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }

    /// Counts the rest of a request's body, which is read after its answer, as in flight.
    pub(crate) fn go_on(activity: &Arc<Activity>) -> Self {
        activity.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request whose handler waits for more of its body.
#[derive(Debug)]
pub(crate) struct AwaitedBody(Arc<Activity>);

impl AwaitedBody {
    pub(crate) fn begin(activity: &Arc<Activity>) -> Self {
        activity.bodies_awaited.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        self.0.bodies_awaited.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http2_is_known_however_its_preface_is_cut() {
        for cut in 1..HTTP2_PREFACE.len() {
            let (begin, end) = HTTP2_PREFACE.split_at(cut);
            let activity = Activity::default();
            activity.note_read(begin);
            assert_eq!(activity.phase(), Phase::Head(0), "{cut} bytes");
            activity.note_read(end);
            assert_eq!(activity.phase(), Phase::Idle(0), "{cut} bytes");
        }
        let other = Activity::default();
        other.note_read(b"PRI * HTTP/1.1\r\n");
        other.note_read(HTTP2_PREFACE);
        assert_eq!(other.phase(), Phase::Head(0));
    }

    #[test]
    fn the_first_head_of_http2_begins_with_its_frame() {
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1];
        let head = [0, 0, 1, HTTP2_HEADERS];
        for cut in 1..settings.len() {
            let activity = Arc::new(Activity::default());
            activity.note_read(HTTP2_PREFACE);
            let (begin, end) = settings.split_at(cut);
            for (bytes, phase) in [
                (begin, Phase::Idle(0)),
                (end, Phase::Idle(0)),
                (&head[..3], Phase::Idle(0)),
                (&head[3..], Phase::Head(0)),
                (b"".as_slice(), Phase::Head(0)),
            ] {
                activity.note_read(bytes);
                assert_eq!(activity.phase(), phase, "{cut}: {bytes:?}");
            }
            drop(InFlight::begin(&activity));
            assert_eq!(activity.phase(), Phase::Idle(1));
        }
    }

    #[test]
    fn a_body_that_moves_on_is_not_kept_back() {
        let activity = Arc::new(Activity::default());
        let first = InFlight::begin(&activity);
        assert_eq!(activity.phase(), Phase::Busy);
        let awaited = AwaitedBody::begin(&activity);
        let before = activity.phase();
        assert_eq!(before, Phase::Body(1, 0));
        activity.note_body(1_023);
        assert_eq!(activity.phase(), before, "a few bytes");
        activity.note_body(1);
        assert_ne!(activity.phase(), before);
        // Another request whose handler is at work.
        let second = InFlight::begin(&activity);
        assert_eq!(activity.phase(), Phase::Busy);
        drop((second, awaited));
        assert_eq!(activity.phase(), Phase::Busy);
        drop(first);
        assert_eq!(activity.phase(), Phase::Idle(2));
    }
}
