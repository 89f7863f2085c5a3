//! Acquires that are under way at the same moment: each is answered as if it was the only one.

use super::{Bench, acquire, ask, granted, group, name, one, owner, refused, release};

pub(crate) async fn of_many_at_once_each_has_its_own_answer(bench: &dyn Bench) {
    let held = granted(acquire(bench, &one("mine"), 1).await).token;
    granted(acquire(bench, &one("theirs"), 2).await);
    granted(acquire(bench, &group(&["A-1", "A-3"]), 3).await);
    let batch = [
        ask(bench, &one("free"), 4),
        ask(bench, &one("theirs"), 5),
        ask(bench, &one("mine"), 1),
        ask(bench, &group(&["A-1", "A-2", "A-3"]), 6),
        ask(bench, &one("late"), 7),
    ];
    let backend = bench.backend();
    let [free, theirs, mine, group, late] = batch.each_ref().map(|ask| backend.acquire(ask));
    let replies = tokio::join!(free, theirs, mine, group, late);
    let mut replies = <[_; 5]>::from(replies).into_iter();
    let mut next = || replies.next().unwrap();
    let free = granted(next());
    let conflicts = |reply| {
        let refusal = refused(reply);
        let names = refusal.conflicts.iter();
        names.map(|held| held.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(conflicts(next()), ["theirs"]);
    let again = granted(next());
    assert_eq!((again.token.number(), again.again), (held.number(), true));
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
