//! The servers that are compared: the product on its own ledger, the product on shared services, and the
//! peer on the same, by each of its flows.

/// A server that a storm is sent at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// The product on a SQLite ledger of its own.
    Embedded,
    /// The product on PostgreSQL and Redis.
    Shared,
    Peer(Flow),
}

/// How the peer sells a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Distributed,
    FailFast,
    Pessimistic,
    Redis,
}

/// All, in the order of their turns.
pub(super) const ALL: [Contender; 6] = [
    Contender::Embedded,
    Contender::Shared,
    Contender::Peer(Flow::Distributed),
    Contender::Peer(Flow::FailFast),
    Contender::Peer(Flow::Pessimistic),
    Contender::Peer(Flow::Redis),
];

/// The one that the goals were set against. Most of its time it waits for busy locks.
pub(super) const RIVAL: Contender = Contender::Peer(Flow::Distributed);

/// The same without that wait: refuses more, and sooner.
pub(super) const SECOND_RIVAL: Contender = Contender::Peer(Flow::FailFast);

impl Contender {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Shared => "shared",
            Self::Peer(Flow::Distributed) => "peer distributed",
            Self::Peer(Flow::FailFast) => "peer fail-fast",
            Self::Peer(Flow::Pessimistic) => "peer pessimistic",
            Self::Peer(Flow::Redis) => "peer redis",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Embedded => "soldonce serve on a SQLite ledger of its own, every answer durable",
            Self::Shared => "soldonce serve on the PostgreSQL, behind its shield on the Redis",
            Self::Peer(Flow::Distributed) => {
                "a lock in Redis, look and write in PostgreSQL, release; a busy lock is asked for again"
            }
            Self::Peer(Flow::FailFast) => "the same, but a busy lock refuses at once",
            Self::Peer(Flow::Pessimistic) => "the row of the seat is locked in PostgreSQL",
            Self::Peer(Flow::Redis) => "SET NX PX in Redis alone: a hold is gone with the Redis",
        }
    }

    pub(super) fn is_product(self) -> bool {
        !matches!(self, Self::Peer(_))
    }
}

impl Flow {
    /// Returns the peer's settings for it: the flow, and how often it retries a busy lock.
    pub(super) fn settings(self) -> [(&'static str, &'static str); 2] {
        let (flow, retries) = match self {
            Self::Distributed => ("distributed", "3"),
            Self::FailFast => ("distributed", "0"),
            Self::Pessimistic => ("pessimistic", "0"),
            Self::Redis => ("redis", "0"),
        };
        [("PEER_FLOW", flow), ("PEER_LOCK_RETRIES", retries)]
    }
}
