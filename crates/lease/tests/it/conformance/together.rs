//! Acquires that are asked for in one call: each is answered as if it had been asked for alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use soldonce_lease::backend::{Acquire, AcquireReply, Answers};
use tokio::sync::Notify;

use super::{Bench, acquire, ask, granted, group, name, one, owner, refused, release};

/// Longest wait for the answers to one call.
const ANSWERS_LIMIT: Duration = Duration::from_secs(10);

/// What an acquire of a batch was told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Answer(AcquireReply),
    GivenBack,
}

/// Keeps whatever is told.
pub(crate) struct Heard {
    told: Mutex<Vec<Vec<Told>>>,
    more: Notify,
}

impl Heard {
    fn new(asked: usize) -> Arc<Self> {
        Arc::new(Self {
            told: Mutex::new(vec![Vec::new(); asked]),
            more: Notify::new(),
        })
    }

    fn tell(&self, index: usize, told: Told) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        all[index].push(told);
        self.more.notify_one();
    }

    fn told(&self) -> Vec<Vec<Told>> {
        let told = self.told.lock();
        told.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Answers for Heard {
    fn is_awaited(&self, index: usize) -> bool {
        self.told()[index].is_empty()
    }

    fn answer(&self, index: usize, reply: AcquireReply) {
        self.tell(index, Told::Answer(reply));
    }

    fn give_back(&self, index: usize) {
        self.tell(index, Told::GivenBack);
    }
}

/// Asks for all of them in one call; what each was told.
pub(crate) async fn together(
    backend: &dyn soldonce_lease::backend::Backend,
    batch: &[Acquire],
) -> Vec<Told> {
    let heard = Heard::new(batch.len());
    let all = async {
        backend.acquire_each(batch.to_vec(), heard.clone()).await;
        while heard.told().iter().any(Vec::is_empty) {
            heard.more.notified().await;
        }
    };
    let in_time = tokio::time::timeout(ANSWERS_LIMIT, all).await;
    let told = heard.told();
    assert!(in_time.is_ok(), "somebody heard nothing: {told:?}");
    let one = |mut told: Vec<Told>| {
        assert_eq!(told.len(), 1, "told twice: {told:?}");
        told.remove(0)
    };
    told.into_iter().map(one).collect()
}

/// The same as answers: who was given back asks alone, as he must.
async fn answers(bench: &dyn Bench, batch: &[Acquire]) -> Vec<AcquireReply> {
    let mut replies = Vec::new();
    for (told, ask) in together(bench.backend(), batch).await.iter().zip(batch) {
        replies.push(match told {
            Told::Answer(reply) => reply.clone(),
            Told::GivenBack => bench.backend().acquire(ask).await,
        });
    }
    replies
}

pub(crate) async fn of_many_in_one_call_each_has_its_own_answer(bench: &dyn Bench) {
    let mine = granted(acquire(bench, &one("mine"), 1).await).token;
    granted(acquire(bench, &one("theirs"), 2).await);
    granted(acquire(bench, &group(&["A-1", "A-3"]), 3).await);
    let batch = [
        ask(bench, &one("free"), 4),
        ask(bench, &one("theirs"), 5),
        ask(bench, &one("mine"), 1),
        ask(bench, &group(&["A-1", "A-2", "A-3"]), 6),
        ask(bench, &one("late"), 7),
    ];
    let replies = answers(bench, &batch).await;
    assert_eq!(replies.len(), batch.len());
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap();
    let free = granted(next());
    let conflicts = |reply| {
        let refusal = refused(reply);
        let names = refusal.conflicts.iter();
        names.map(|held| held.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(conflicts(next()), ["theirs"]);
    let again = granted(next());
    assert_eq!((again.token.number(), again.again), (mine.number(), true));
    assert_eq!(conflicts(next()), ["A-1", "A-3"]);
    let late = granted(next());
    for (text, n, got) in [("free", 4, &free), ("late", 7, &late)] {
        assert!(!got.again);
        let holder = bench.backend().inspect(None, &name(text)).await.unwrap();
        let holder = holder.expect("granted, but nobody holds it");
        let told = (owner(n), got.token.number());
        assert_eq!((holder.owner, holder.token.number()), told, "{text}");
    }
    for (text, n) in [("free", 4), ("late", 7), ("mine", 1), ("theirs", 2)] {
        release(bench, &one(text), n, None).await;
    }
}
