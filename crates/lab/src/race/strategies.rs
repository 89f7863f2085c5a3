//! The table of strategies, in the order of the story: what goes wrong, what a database can do about it,
//! locks outside the database, the product. A new one is an entry here and a [`Method`].

use anyhow::bail;

use super::judge::Promise;
use super::textbook::{Guards, Method};

pub(super) struct Strategy {
    /// As on the command line.
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    /// How it works, in a line.
    pub(super) mechanism: &'static str,
    /// Why it holds or breaks, in a few sentences.
    pub(super) why: &'static str,
    pub(super) method: Method,
    /// What the tables refuse by themselves. The product has tables of its own.
    pub(super) guards: Guards,
}

impl Strategy {
    /// Finds the strategies of these names; `all` is every one. Each once, in the order of the table.
    pub(super) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Self>> {
        if names.iter().any(|name| name == "all") {
            return Ok(STRATEGIES.iter().collect());
        }
        let is_known = |name: &&String| STRATEGIES.iter().any(|known| known.name == name.as_str());
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let known: Vec<_> = STRATEGIES.iter().map(|known| known.name).collect();
            let known = known.join(", ");
            bail!("--strategies {unknown}: known are all, {known}");
        }
        let is_named = |known: &&Self| names.iter().any(|name| name == known.name);
        Ok(STRATEGIES.iter().filter(is_named).collect())
    }
}

pub(super) static STRATEGIES: [Strategy; 12] = [
    Strategy {
        name: "naive",
        promise: Promise::Broken,
        mechanism: "Look whether the seat is free, then take it.",
        why: "Every buyer who looks before the first one has written sees a free seat, and all of \
              them write. Between the look and the write lies one trip to the database and back; no \
              sleep was added, and none is needed. Nothing in these tables says that a seat is sold \
              once, so nothing objects.",
        method: Method::Naive,
        guards: Guards::None,
    },
    Strategy {
        name: "naive+guards",
        promise: Promise::SoldOnce,
        mechanism: "The same code on tables with a unique key on sold seats.",
        why: "The buyers still meet, and still write. The key takes the first one and refuses the \
              others with a duplicate-key error. The code is as wrong as before; the database is \
              not. This is what a guard is worth.",
        method: Method::Naive,
        guards: Guards::KeyAndFence,
    },
    Strategy {
        name: "unsorted",
        promise: Promise::SoldOnce,
        mechanism: "Lock each row as the request lists it, then decide and write.",
        why: "Row locks keep two buyers of a seat apart, and no seat is sold twice. But of two buyers \
              who begin at different ends of a row, each holds what the other waits for. The \
              database finds the circle after its deadlock_timeout, a second unless it is set, and \
              ends one of them with SQLSTATE 40P01; with a crowd that happens over and over. When \
              all list their seats alike it does as well as any row lock.",
        method: Method::Unsorted,
        guards: Guards::None,
    },
    Strategy {
        name: "pessimistic",
        promise: Promise::SoldOnce,
        mechanism: "Lock the rows in order (SELECT .. FOR UPDATE), wait, decide, write.",
        why: "A buyer who comes second waits until the first has committed, and then sees the seat \
              taken. All lock in the same order, so that no circle of waiting arises. It is right \
              and easy to explain. What it costs is time: every buyer stands in line with a \
              connection and a transaction open, to hear a no that was settled long ago.",
        method: Method::Pessimistic,
        guards: Guards::None,
    },
    Strategy {
        name: "nowait",
        promise: Promise::SoldOnce,
        mechanism: "The same with NOWAIT: a locked row is an answer, not a wait.",
        why: "A row that is locked means that another buyer is deciding about it now. The second one \
              is refused at once and holds no connection meanwhile. It may be refused for a seat \
              that stays free, because the first one was refused another seat.",
        method: Method::NoWait,
        guards: Guards::None,
    },
    Strategy {
        name: "optimistic",
        promise: Promise::SoldOnce,
        mechanism: "Read versions, decide, write where they are still the same; else again.",
        why: "Nothing is locked while the code thinks. The statement that writes names the version of \
              each row it rests on; if fewer rows were written than named, the transaction is rolled \
              back, and the buyer reads and decides again, a bounded number of times. Good where \
              conflicts are few. On one hot seat most of the work is done for nothing.",
        method: Method::Optimistic,
        guards: Guards::None,
    },
    Strategy {
        name: "constraint",
        promise: Promise::SoldOnce,
        mechanism: "One statement, sent without asking first: a unique key decides.",
        why: "Two buyers of a seat insert the same key, and the database takes it once. The loser \
              gets a duplicate-key error, which is ordinary control flow here. There is no lock to \
              hold and nothing to forget. It knows no timed hold: a seat is sold or it is not.",
        method: Method::Constraint,
        guards: Guards::KeyAndFence,
    },
    Strategy {
        name: "lease",
        promise: Promise::SoldOnce,
        mechanism: "SET NX PX of each seat in Redis, then read and write, then a checked release.",
        why: "Most losers meet at Redis and not at the database. While the lease lives, one buyer is \
              alone with the seat. The lease may end while its holder is stopped, and then two \
              believe that they are alone: the scene below shows it. Without pauses it sells once.",
        method: Method::Lease,
        guards: Guards::None,
    },
    Strategy {
        name: "lease+guards",
        promise: Promise::SoldOnce,
        mechanism: "The same, with a fencing token that the table compares, and the unique key.",
        why: "The token rises with every grant and is written with the seat. A holder that was \
              stopped past its lease writes an older one, and the table refuses it. The lease saves \
              work; the fence keeps the promise.",
        method: Method::Lease,
        guards: Guards::KeyAndFence,
    },
    Strategy {
        name: "redlock",
        promise: Promise::SoldOnce,
        mechanism: "The same lease on a majority of independent Redis servers.",
        why: "It goes on when a minority of the servers is gone, and pays for that with a question to \
              each of them. Whether such a lock alone is safe has been argued about for years: it \
              rests on clocks and on pauses that end. The scene below stops its holder, too.",
        method: Method::Redlock,
        guards: Guards::None,
    },
    Strategy {
        name: "redlock+guards",
        promise: Promise::SoldOnce,
        mechanism: "The same on tables with the unique key.",
        why: "A majority of servers gives no number that rises, so there is nothing to fence with. \
              The unique key on sold seats refuses the second sale; it could not refuse an older \
              holder who changes something else.",
        method: Method::Redlock,
        guards: Guards::KeyAndFence,
    },
    Strategy {
        name: "queue",
        promise: Promise::SoldOnce,
        mechanism: "Gather the commands of an event, decide them together, commit once.",
        why: "The product. While a commit is under way the next commands gather. Then the rules \
              decide them one after the other in memory, and one statement over arrays stores what \
              was accepted. It names the version of every row that the decisions rest on: if another \
              server wrote in between, nothing is stored and all is decided again. One commit \
              acknowledges many buyers, so it grows with the crowd. Here it also makes timed holds, \
              keeps an audit and confirms in a second step, which the others do not.",
        method: Method::Queue,
        guards: Guards::KeyAndFence,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_chosen_once_and_in_the_order_of_the_table() {
        let chosen = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let chosen = Strategy::chosen(&names)?;
            anyhow::Ok(chosen.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(
            chosen(&["queue", "naive", "queue"]).unwrap(),
            ["naive", "queue"]
        );
        assert_eq!(chosen(&["all"]).unwrap().len(), STRATEGIES.len());
        let error = chosen(&["queue", "nave"]).unwrap_err().to_string();
        assert!(
            error.contains("--strategies nave: known are all, naive"),
            "{error}"
        );
    }
}
