//! One Redis server with the scripts of `lease.md` 6.3, for one name. Its ghosts, which no script
//! reads, remember what the properties ask about.

use super::Bug;
use super::world::Phase;

/// One for each grant that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Owner(pub(super) u8);

/// A number, and whose grant it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Token {
    pub(super) epoch: u8,
    pub(super) counter: u8,
    pub(super) owner: Owner,
}

impl Token {
    /// What is compared.
    fn number(self) -> (u8, u8) {
        (self.epoch, self.counter)
    }

    pub(super) fn is_above(self, other: Token) -> bool {
        self.number() > other.number()
    }
}

/// A moment at which a fence record was found unfit, on one run of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ask {
    run: u8,
    moment: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bound {
    epoch: u8,
    counter: u8,
    run: u8,
}

/// What is replicated, and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Data {
    holder: Option<Token>,
    bound: Option<Bound>,
    ask: Option<Ask>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    data: Data,
    /// The replication id.
    run: u8,
    pub(super) is_primary: bool,
    /// Ghost: the highest token granted by those whose data this server is to have.
    highest: Option<Token>,
    /// Ghost: a bit for each owner that was granted or renewed here, and has not ended here.
    live: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Granted(Token),
    Refused,
    Epoch { above: u8, ask: Ask },
}

impl Node {
    pub(super) fn new(run: u8) -> Self {
        Self {
            data: Data::default(),
            run,
            is_primary: run == 0,
            highest: None,
            live: 0,
        }
    }

    /// The script `acquire`. `moments` is the server's clock, which only an ask looks at.
    pub(super) fn acquire(
        &mut self,
        owner: Owner,
        floor: Option<Token>,
        (bug, moments): (Option<Bug>, &mut u8),
    ) -> Answer {
        if let Some(token) = self.data.holder {
            let ours = token.owner == owner;
            return if ours {
                Answer::Granted(token)
            } else {
                Answer::Refused
            };
        }
        let floor = floor.filter(|_| bug != Some(Bug::FloorIgnored));
        let bound = match self.data.bound {
            _ if bug == Some(Bug::BareCount) => self.data.bound.unwrap_or_else(|| self.bind(0)),
            Some(bound) if bound.run == self.run || bug == Some(Bug::RunIgnored) => bound,
            _ => return self.epoch(floor, moments),
        };
        let mut counter = bound.counter;
        match floor {
            Some(floor) if floor.epoch > bound.epoch => return self.epoch(Some(floor), moments),
            Some(floor) if floor.epoch == bound.epoch => counter = counter.max(floor.counter),
            Some(_) | None => {}
        }
        counter += 1;
        self.data.bound = Some(Bound { counter, ..bound });
        let token = Token {
            epoch: bound.epoch,
            counter,
            owner,
        };
        self.data.holder = Some(token);
        self.live |= bit(owner);
        Answer::Granted(token)
    }

    fn bind(&self, epoch: u8) -> Bound {
        Bound {
            epoch,
            counter: 0,
            run: self.run,
        }
    }

    fn epoch(&mut self, floor: Option<Token>, moments: &mut u8) -> Answer {
        let stands = self.data.ask.filter(|ask| ask.run == self.run);
        let ask = stands.unwrap_or_else(|| {
            *moments += 1;
            Ask {
                run: self.run,
                moment: *moments,
            }
        });
        self.data.ask = Some(ask);
        let here = self.data.bound.map_or(0, |bound| bound.epoch);
        let above = floor.map_or(here, |floor| here.max(floor.epoch));
        Answer::Epoch { above, ask }
    }

    /// The script `install`.
    pub(super) fn install(&mut self, epoch: u8, ask: Ask, bug: Option<Bug>) {
        let here = self.data.bound.map_or(0, |bound| bound.epoch);
        let stands = self.data.ask == Some(ask) && ask.run == self.run;
        if epoch > here && (stands || bug == Some(Bug::AskIgnored)) {
            self.data.bound = Some(self.bind(epoch));
            self.data.ask = None;
        }
    }

    /// The script `renew`: whether the lease lives on.
    pub(super) fn renew(&mut self, token: Token, bug: Option<Bug>) -> bool {
        if bug == Some(Bug::RenewCreates) {
            self.data.holder = Some(token);
            self.live |= bit(token.owner);
        }
        self.data.holder == Some(token)
    }

    /// The script `release`.
    pub(super) fn release(&mut self, token: Token, bug: Option<Bug>) {
        if self.data.holder == Some(token) || bug == Some(Bug::BlindDelete) {
            self.data.holder = None;
            self.live &= !bit(token.owner);
        }
    }

    /// Notes a grant; false if its token is not above all earlier ones.
    pub(super) fn note(&mut self, token: Token) -> bool {
        let rises = self.highest.is_none_or(|highest| token.is_above(highest));
        self.highest = self.highest.max(Some(token));
        rises
    }

    /// Whether `acquire` of a client in this phase would be more than a refusal.
    pub(super) fn may_answer(&self, phase: Phase) -> bool {
        let Some(held) = self.data.holder else {
            return true;
        };
        matches!(phase, Phase::Asking(owner) if owner == held.owner)
    }

    /// Whether a new owner would be granted a new token now, and not told one again.
    pub(super) fn is_free(&self) -> bool {
        self.data.holder.is_none()
    }

    pub(super) fn live_owners(&self) -> u32 {
        self.live.count_ones()
    }

    pub(super) fn epoch_in_use(&self) -> u8 {
        self.data.bound.map_or(0, |bound| bound.epoch)
    }

    pub(super) fn expire(&mut self) {
        if let Some(token) = self.data.holder.take() {
            self.live &= !bit(token.owner);
        }
    }

    pub(super) fn flush(&mut self) {
        self.data = Data::default();
        self.live = 0;
    }

    pub(super) fn evict_fence(&mut self) {
        self.data.bound = None;
        self.data.ask = None;
    }

    /// A restart that kept the data. With [`Node::flush`], one that did not.
    pub(super) fn restart(&mut self, run: u8) {
        self.run = run;
    }

    /// Takes over what the primary has now. Called at any time or never, so a replica is as late as
    /// it likes.
    pub(super) fn follow(&mut self, primary: &Node) {
        self.data = primary.data;
    }

    /// Becomes a primary with the data it has. What it does not know of is lost.
    pub(super) fn promote(&mut self, run: u8, before: &Node) {
        self.run = run;
        self.is_primary = true;
        self.highest = self.highest.max(before.highest);
        self.live = self.data.holder.map_or(0, |token| bit(token.owner));
    }

    /// Becomes a replica of `primary`.
    pub(super) fn rejoin(&mut self, primary: &Node) {
        self.is_primary = false;
        self.live = 0;
        self.follow(primary);
    }
}

fn bit(owner: Owner) -> u16 {
    1 << owner.0
}
