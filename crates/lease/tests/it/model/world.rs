//! The state of the whole: servers, clients, what is still in buffers, the epoch source, the target.

use super::node::{Answer, Ask, Node, Owner, Token};
use super::{Bounds, Bug};

pub(super) const CLIENTS: usize = 3;
pub(super) const NODES: usize = 2;

/// Whether the client gets the answer of a command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Seen,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    Idle,
    Asking(Owner),
    Drawing {
        owner: Owner,
        node: usize,
        above: u8,
        ask: Ask,
    },
    Installing {
        owner: Owner,
        node: usize,
        epoch: u8,
        ask: Ask,
    },
    Holding(Token),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Client {
    pub(super) phase: Phase,
    /// A token read before a pause: its write comes whenever the pause ends.
    pub(super) pen: Option<Token>,
    /// The highest token that the gate told of.
    pub(super) floor: Option<Token>,
    /// The last epoch drawn, for the bug that uses it again.
    drawn: Option<u8>,
}

/// A command whose caller has gone, still in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Late {
    Acquire { owner: Owner, floor: Option<Token> },
    Install { epoch: u8, ask: Ask },
    Renew(Token),
    Release(Token),
}

/// A property that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Broken {
    StaleWrite,
    TokenFell,
    LostLeaseWrote,
    BelowFloor,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) nodes: [Node; NODES],
    pub(super) clients: [Client; CLIENTS],
    pub(super) late: Option<Late>,
    /// The last epoch that the source gave.
    source: u8,
    /// The highest token that the gate has seen.
    gate: Option<Token>,
    /// Ghost: the highest token that wrote, gate or no gate.
    written: Option<Token>,
    pub(super) left: Bounds,
    owners: u8,
    runs: u8,
    moments: u8,
    pub(super) broken: Option<Broken>,
}

impl World {
    pub(super) fn new(left: Bounds) -> Self {
        let client = Client {
            phase: Phase::Idle,
            pen: None,
            floor: None,
            drawn: None,
        };
        Self {
            nodes: [Node::new(0), Node::new(1)],
            clients: [client; CLIENTS],
            late: None,
            source: 0,
            gate: None,
            written: None,
            left,
            owners: 0,
            runs: 1,
            moments: 0,
            broken: None,
        }
    }

    /// Runs `acquire` on `node`. A client whose reply was lost asks again with the same owner.
    pub(super) fn acquire(&mut self, client: usize, node: usize, reply: Reply, bug: Option<Bug>) {
        let owner = match self.clients[client].phase {
            Phase::Asking(owner) => owner,
            _ => self.next_owner(),
        };
        let floor = self.clients[client].floor;
        let answer = self.run_acquire((owner, floor), node, bug);
        self.clients[client].phase = match (reply, answer) {
            (Reply::Lost, _) => {
                self.left.late -= 1;
                Phase::Asking(owner)
            }
            (Reply::Seen, Answer::Granted(token)) => Phase::Holding(token),
            (Reply::Seen, Answer::Refused) => Phase::Idle,
            (Reply::Seen, Answer::Epoch { above, ask }) => Phase::Drawing {
                owner,
                node,
                above,
                ask,
            },
        };
    }

    fn next_owner(&mut self) -> Owner {
        let owner = Owner(self.owners);
        self.left.grants -= 1;
        self.owners += 1;
        owner
    }

    fn run_acquire(
        &mut self,
        (owner, floor): (Owner, Option<Token>),
        node: usize,
        bug: Option<Bug>,
    ) -> Answer {
        let at = &mut self.nodes[node];
        let is_new = at.is_free();
        let answer = at.acquire(owner, floor, (bug, &mut self.moments));
        if let (true, Answer::Granted(token)) = (is_new, answer) {
            let rises = at.note(token);
            if !rises && !self.left.restored {
                self.break_(Broken::TokenFell);
            }
            if floor.is_some_and(|floor| !token.is_above(floor)) {
                self.break_(Broken::BelowFloor);
            }
        }
        answer
    }

    pub(super) fn draw(&mut self, client: usize, bug: Option<Bug>) {
        let Phase::Drawing {
            owner,
            node,
            above,
            ask,
        } = self.clients[client].phase
        else {
            return;
        };
        let used = self.clients[client].drawn.filter(|drawn| *drawn > above);
        let epoch = match used {
            Some(epoch) if bug == Some(Bug::EpochReused) => epoch,
            _ => self.source.max(above) + 1,
        };
        self.source = self.source.max(epoch);
        if bug == Some(Bug::EpochReused) {
            self.clients[client].drawn = Some(epoch);
        }
        self.clients[client].phase = Phase::Installing {
            owner,
            node,
            epoch,
            ask,
        };
    }

    /// Runs `install`; for any reply, the client asks again.
    pub(super) fn install(&mut self, client: usize, bug: Option<Bug>) {
        let Phase::Installing {
            owner,
            node,
            epoch,
            ask,
        } = self.clients[client].phase
        else {
            return;
        };
        self.nodes[node].install(epoch, ask, bug);
        self.clients[client].phase = Phase::Asking(owner);
    }

    pub(super) fn renew(&mut self, client: usize, node: usize, reply: Reply, bug: Option<Bug>) {
        let Phase::Holding(token) = self.clients[client].phase else {
            return;
        };
        let lives = self.nodes[node].renew(token, bug);
        if reply == Reply::Seen && !lives {
            self.clients[client].phase = Phase::Idle;
        }
    }

    pub(super) fn release(&mut self, client: usize, node: usize, bug: Option<Bug>) {
        if let Phase::Holding(token) = self.clients[client].phase {
            self.nodes[node].release(token, bug);
            self.clients[client].phase = Phase::Idle;
        }
    }

    /// The client stops waiting for the command that is under way, which stays in a buffer.
    pub(super) fn postpone(&mut self, client: usize, late: Late) {
        self.left.late -= 1;
        self.late = Some(late);
        let phase = &mut self.clients[client].phase;
        *phase = match (late, *phase) {
            (Late::Install { .. }, Phase::Installing { owner, .. }) => Phase::Asking(owner),
            (Late::Renew(_), holding) => holding,
            (Late::Acquire { .. } | Late::Install { .. } | Late::Release(_), _) => Phase::Idle,
        };
    }

    /// The buffer is sent to `node` after all.
    pub(super) fn deliver(&mut self, node: usize, bug: Option<Bug>) {
        match self.late.take() {
            Some(Late::Acquire { owner, floor }) => {
                self.run_acquire((owner, floor), node, bug);
            }
            Some(Late::Install { epoch, ask }) => self.nodes[node].install(epoch, ask, bug),
            Some(Late::Renew(token)) => {
                self.nodes[node].renew(token, bug);
            }
            Some(Late::Release(token)) => self.nodes[node].release(token, bug),
            None => {}
        }
    }

    /// The holder reads its token with `token`, and is paused before it writes.
    pub(super) fn take_pen(&mut self, client: usize) {
        if let Phase::Holding(token) = self.clients[client].phase {
            self.clients[client].pen = Some(token);
        }
    }

    /// The pause ends in the write.
    pub(super) fn write(&mut self, client: usize, bug: Option<Bug>) {
        let Some(token) = self.clients[client].pen.take() else {
            return;
        };
        if let Some(current) = self.gate.filter(|seen| seen.is_above(token))
            && bug != Some(Bug::NoGate)
        {
            self.refused(client, token, current);
            return;
        }
        if self.written.is_some_and(|written| written.is_above(token)) {
            self.break_(Broken::StaleWrite);
        }
        if self.clients[client].floor >= Some(token) {
            self.break_(Broken::LostLeaseWrote);
        }
        self.gate = self.gate.max(Some(token));
        self.written = self.written.max(Some(token));
    }

    /// `report_overtaken`: the lease is lost, and the floor is kept for the name.
    fn refused(&mut self, client: usize, token: Token, current: Token) {
        let client = &mut self.clients[client];
        client.floor = client.floor.max(Some(current));
        if client.phase == Phase::Holding(token) {
            client.phase = Phase::Idle;
        }
    }

    /// The deadline passes for the client, though the servers may think otherwise.
    pub(super) fn lose(&mut self, client: usize) {
        self.clients[client].phase = Phase::Idle;
    }

    pub(super) fn promote(&mut self, node: usize) {
        let before = self.nodes[1 - node].clone();
        let run = self.next_run();
        self.nodes[node].promote(run, &before);
    }

    pub(super) fn rejoin(&mut self, node: usize) {
        let primary = self.nodes[1 - node].clone();
        self.nodes[node].rejoin(&primary);
    }

    pub(super) fn replicate(&mut self, from: usize) {
        let primary = self.nodes[from].clone();
        self.nodes[1 - from].follow(&primary);
    }

    pub(super) fn next_run(&mut self) -> u8 {
        self.runs += 1;
        self.runs
    }

    /// An old backup is put back in place of the epoch source.
    pub(super) fn restore_source(&mut self) {
        self.left.restored = true;
        self.source = 0;
    }

    /// Whether the gate would refuse the write that comes after the pause.
    pub(super) fn is_overtaken(&self, client: &Client) -> bool {
        client.pen.is_some() && self.gate > client.pen
    }

    /// Makes states equal that can never differ again: clients are alike, and no client will look at
    /// what is left of some.
    pub(super) fn forget(&mut self) {
        if self.left.grants == 0 {
            let done = |client: &&mut Client| client.phase == Phase::Idle && client.pen.is_none();
            let done = self.clients.iter_mut().filter(done);
            done.for_each(|client| client.floor = None);
        }
        self.clients.sort_unstable();
        if self.left.faults == 0 {
            let replicas = self.nodes.iter_mut().filter(|node| !node.is_primary);
            replicas.for_each(Node::flush);
        }
    }

    fn break_(&mut self, broken: Broken) {
        self.broken = self.broken.or(Some(broken));
    }
}
