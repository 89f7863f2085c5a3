//! The strategies and what is to be said about each.

use super::super::judge::Promise;
use super::{Kind, Strategy};

/// All of them.
pub(in super::super) static STRATEGIES: [Strategy; 9] = [
    Strategy {
        name: "naive",
        promise: Promise::Broken,
        mechanism: "Look whether the seat is free, then take it.",
        why: "Every buyer who looks before the first one has written sees a free seat, and all of \
              them write. Between the look and the write lies one trip to the database and back; no \
              sleep was added, and none is needed. Nothing in these tables says that a seat is sold \
              once, so nothing objects. Only the lab has it, to show what the others are for.",
        kind: Kind::Naive,
    },
    Strategy {
        name: "unsorted",
        promise: Promise::SoldOnce,
        mechanism: "Lock each row as the request lists it, then decide and write.",
        why: "Row locks keep two buyers of a seat apart, and no seat is sold twice. But of two buyers \
              who begin at different ends of a row, each holds what the other waits for. The \
              database finds the circle after its deadlock_timeout, a second unless it is set, and \
              ends one of them with SQLSTATE 40P01; with a crowd that happens over and over. When \
              all list their seats alike it does as well as any row lock. Only the lab has it, to \
              show what sorting is for.",
        kind: Kind::Unsorted,
    },
    Strategy {
        name: "pessimistic",
        promise: Promise::SoldOnce,
        mechanism: "Lock the rows in unit order (SELECT .. FOR UPDATE), wait, decide, write.",
        why: "Whoever comes second waits until the first has committed, and then sees the seat taken. \
              All lock in the same sequence, so nobody waits in a circle. It is right and easy to \
              explain. What it costs is time: every buyer stands in line with a connection and a \
              transaction open, to hear a no that was settled long ago.",
        kind: Kind::Pessimistic,
    },
    Strategy {
        name: "nowait",
        promise: Promise::SoldOnce,
        mechanism: "The same with NOWAIT: a locked row is an answer, not a wait.",
        why: "A row that is locked means that somebody is deciding about it now. The buyer lets go at \
              once, looks again, and is refused when the other has written. Hardly a transaction \
              waits (only a buyer who has looked ten times does), but the asking again is work for \
              the database while the winner is still writing.",
        kind: Kind::NoWait,
    },
    Strategy {
        name: "optimistic",
        promise: Promise::SoldOnce,
        mechanism: "Read versions, decide, write where they are still the same; else again.",
        why: "Nothing is locked while the rules think. The statement that writes names the version of \
              each row it rests on, and writes nothing when one has moved; then the buyer reads and \
              decides again, a bounded number of times. Good where conflicts are few. On one hot \
              seat most of the work is done for nothing.",
        kind: Kind::Optimistic,
    },
    Strategy {
        name: "constraint",
        promise: Promise::SoldOnce,
        mechanism: "One statement, sent without asking first: a unique key decides.",
        why: "Two buyers of a seat would both write its next version, and the key of event, unit and \
              version takes that once. The loser gets a duplicate-key error, which is ordinary \
              control flow here: he reads what happened and is refused. There is no lock to hold \
              and nothing to forget, and the same key stands behind all the other strategies.",
        kind: Kind::Constraint,
    },
    Strategy {
        name: "lease",
        promise: Promise::SoldOnce,
        mechanism: "A lease over all seats in Redis, one round trip, then a fenced write.",
        why: "One script takes the lease on every wanted seat or on none, so that most losers meet at \
              Redis and not at the database. The lease is not what keeps the promise: it may end \
              while its owner is paused, and Redis may lose it. The write names the versions it \
              rests on and carries the lease's fencing token, and the database refuses one that \
              was overtaken. Redis away costs time, never a seat.",
        kind: Kind::Lease,
    },
    Strategy {
        name: "redlock",
        promise: Promise::SoldOnce,
        mechanism: "The same over a majority of independent Redis servers.",
        why: "It goes on when a minority of the servers is gone, and pays for that with a question to \
              each of them. Whether such a lock alone is safe has been argued about for years: it \
              rests on clocks and on pauses that end. Here nothing rests on it. The write is \
              guarded by versions as all others are.",
        kind: Kind::Redlock,
    },
    Strategy {
        name: "queue",
        promise: Promise::SoldOnce,
        mechanism: "Gather the commands of an event, decide them together, commit once.",
        why: "While a commit is under way the next commands gather, and those who come right after \
              it. Then the rules settle them against each other in memory, and one statement over \
              arrays stores what was accepted. It names the version of every row that the decisions \
              rest on: if another server wrote in between, nothing is stored and all is decided \
              again. One commit acknowledges many buyers, so it grows with the crowd. This is the \
              default of `soldonce serve`.",
        kind: Kind::Queue,
    },
];

/// A guarded strategy that sells twice: the race must refuse it.
#[cfg(feature = "planted")]
pub(super) static PLANTED: Strategy = Strategy {
    name: "planted",
    promise: Promise::SoldOnce,
    mechanism: "Naive under a guarded name.",
    why: "A race that has not been seen to refuse anything proves nothing.",
    kind: Kind::Naive,
};
