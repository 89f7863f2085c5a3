//! Whether the peer takes an answer's body. On HTTP/2 the socket does not tell: a peer may read it,
//! answer pings, and leave the window of a stream closed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::activity::InFlight;
use super::shares::Share;
use crate::limits::{ANSWER_PIECE_BYTES, ANSWER_TAIL_BYTES};

tokio::task_local! {
    /// The progress of the HTTP/2 stream that a task serves.
    pub(crate) static STREAM: Arc<Progress>;
}

/// What one HTTP/2 stream waits for: odd while it is the peer, even while it is the handler. Two
/// equal odd numbers at two looks mean that the peer took nothing between.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    /// Returns the present number.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.0.load(Ordering::Relaxed))
    }

    /// Notes that the peer is offered the next bytes.
    fn wait_for_peer(&self) {
        let next = self.0.load(Ordering::Relaxed).wrapping_add(1) | 1;
        // Only the task of the stream writes it.
        self.0.store(next, Ordering::Relaxed);
    }

    /// Notes that the peer took all bytes that there were.
    fn wait_for_handler(&self) {
        let mark = self.0.load(Ordering::Relaxed);
        self.0.store(mark.wrapping_add(mark & 1), Ordering::Relaxed);
    }
}

/// A reading of [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Tells whether the stream waits for the peer.
    pub(crate) fn is_for_peer(self) -> bool {
        self.0 & 1 == 1
    }
}

/// An answer's body that keeps its request in flight until it is sent or dropped.
///
/// On HTTP/2 it gives pieces. hyper asks for the next piece when the peer's window has room beyond
/// those before, so that each call is progress. The last piece is small, as no call follows it.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    body: Body,
    /// What is left of the body's last frame.
    rest: Bytes,
    /// None on HTTP/1, where the socket tells.
    progress: Option<Arc<Progress>>,
    _in_flight: InFlight,
    _share: Option<Share>,
}

impl WatchedBody {
    pub(crate) fn new(body: Body, in_flight: InFlight, mut share: Option<Share>) -> Self {
        if let Some(share) = &mut share {
            share.answers(body.size_hint().lower());
        }
        let progress = STREAM.try_with(Arc::clone).ok();
        if let Some(progress) = &progress {
            progress.wait_for_peer();
        }
        Self {
            body,
            rest: Bytes::new(),
            progress,
            _in_flight: in_flight,
            _share: share,
        }
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Some(progress) = &this.progress else {
            return Pin::new(&mut this.body).poll_frame(cx);
        };
        if this.rest.is_empty() {
            let frame = match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {
                    progress.wait_for_handler();
                    return Poll::Pending;
                }
            };
            match frame.into_data() {
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        progress.wait_for_peer();
        let piece = this.rest.split_to(piece_bytes(this.rest.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() {
            self.body.size_hint()
        } else {
            SizeHint::default()
        }
    }
}

/// Returns how many of these bytes the next piece has.
fn piece_bytes(bytes: usize) -> usize {
    match bytes.checked_sub(ANSWER_TAIL_BYTES) {
        None | Some(0) => bytes,
        Some(but_the_tail) => but_the_tail.min(ANSWER_PIECE_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_goes_in_pieces_and_ends_with_a_small_one() {
        let mut left = 3 * ANSWER_PIECE_BYTES;
        let mut pieces = Vec::new();
        while left > 0 {
            pieces.push(piece_bytes(left));
            left -= piece_bytes(left);
        }
        assert_eq!(pieces.iter().sum::<usize>(), 3 * ANSWER_PIECE_BYTES);
        assert!(pieces.iter().all(|piece| *piece <= ANSWER_PIECE_BYTES));
        assert_eq!(pieces.last(), Some(&ANSWER_TAIL_BYTES));
        assert_eq!(piece_bytes(0), 0, "an empty frame stays one");
    }

    #[test]
    fn every_offer_changes_the_mark() {
        let progress = Progress::default();
        assert!(!progress.mark().is_for_peer(), "the handler works");
        progress.wait_for_peer();
        let first = progress.mark();
        progress.wait_for_peer();
        assert!(first.is_for_peer() && progress.mark().is_for_peer());
        assert_ne!(first, progress.mark());
        progress.wait_for_handler();
        assert!(!progress.mark().is_for_peer());
        let quiet = progress.mark();
        progress.wait_for_handler();
        assert_eq!(quiet, progress.mark());
    }
}
