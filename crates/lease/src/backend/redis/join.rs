//! Waits for several calls at once, in place: nothing is spawned, and dropping the wait drops them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

enum Slot<'a, T> {
    Waiting(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
    Done(T),
}

/// The outputs of all futures, in their order.
pub(super) async fn all<'a, T: Send + Unpin + 'a>(
    futures: impl Iterator<Item = impl Future<Output = T> + Send + 'a>,
) -> Vec<T> {
    let mut slots: Vec<Slot<'a, T>> = futures.map(|one| Slot::Waiting(Box::pin(one))).collect();
    poll_fn(|cx| {
        let mut waiting = false;
        for slot in &mut slots {
            if let Slot::Waiting(future) = slot {
                match future.as_mut().poll(cx) {
                    Poll::Ready(output) => *slot = Slot::Done(output),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    let outputs = slots.into_iter().filter_map(|slot| match slot {
        Slot::Done(output) => Some(output),
        Slot::Waiting(_) => None,
    });
    outputs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outputs_keep_their_order_whoever_ends_first() {
        let (late, early) = (
            tokio::sync::oneshot::channel(),
            tokio::sync::oneshot::channel(),
        );
        early.0.send(2).expect("listened to");
        let both = all([late.1, early.1].into_iter());
        let send = async { late.0.send(1).expect("listened to") };
        let (outputs, ()) = tokio::join!(both, send);
        assert_eq!(outputs, [Ok(1), Ok(2)]);
    }
}
