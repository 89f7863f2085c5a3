//! Every interleaving of three clients, a primary and its replica, within bounds: commands, lost
//! replies, commands that arrive after their caller has gone, expiry at any time (so clocks and
//! pauses need no time here), pauses between reading a token and writing with it, flushes, evicted
//! records, restarts, failovers without the last writes, the old primary going on and coming back.
//! `lease.md` 4, 6.3 and 11.1; the fence record is that of decision 0007.
//!
//! Not here: groups, queues and caps, which do not touch tokens; more than one shard.

mod node;
mod planted;
mod walks;
mod world;

use std::io::Write;

use stateright::{Checker, Model, Property};

use world::{Broken, CLIENTS, Client, Late, NODES, Phase, Reply, World};

/// A mistake that the properties must see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Tokens are a count that begins again when the record is gone.
    BareCount,
    /// A process uses the epoch it drew for every later incident.
    EpochReused,
    /// An epoch is installed although the record changed after the draw.
    AskIgnored,
    /// A promoted or restarted server goes on with the epoch it finds.
    RunIgnored,
    /// The target compares nothing.
    NoGate,
    /// A renewal sets the key.
    RenewCreates,
    /// A release compares nothing.
    BlindDelete,
    /// The floor of a request is not looked at.
    FloorIgnored,
}

/// How much may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    /// Grants asked for, by all clients.
    grants: u8,
    /// Flushes, evictions, restarts and promotions.
    faults: u8,
    /// Commands that stay in a buffer, and answers to acquire that are lost.
    late: u8,
    /// The epoch source went back to an old backup.
    restored: bool,
}

struct Leases {
    bug: Option<Bug>,
    bounds: Bounds,
    /// Whether the epoch source may go back once.
    restores: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Acquire(usize, usize, Reply),
    Draw(usize),
    Install(usize),
    Renew(usize, usize, Reply),
    Release(usize, usize),
    Postpone(usize, Late),
    Deliver(usize),
    TakePen(usize),
    Write(usize),
    Lose(usize),
    Expire(usize),
    Replicate(usize),
    Rejoin(usize),
    Flush(usize),
    EvictFence(usize),
    Restart(usize),
    RestartEmpty(usize),
    Promote(usize),
    RestoreSource,
}

impl Model for Leases {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.bounds)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // The way to a broken state is enough.
        if world.broken.is_some() {
            return;
        }
        let primaries = || (0..NODES).filter(|node| world.nodes[*node].is_primary);
        for client in 0..CLIENTS {
            client_actions(world, client, actions);
        }
        for node in primaries() {
            node_actions(world, node, actions);
            if world.late.is_some() {
                actions.push(Action::Deliver(node));
            }
        }
        if self.restores && !world.left.restored {
            actions.push(Action::RestoreSource);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        let bug = self.bug;
        match action {
            Action::Acquire(client, node, reply) => world.acquire(client, node, reply, bug),
            Action::Draw(client) => world.draw(client, bug),
            Action::Install(client) => world.install(client, bug),
            Action::Renew(client, node, reply) => world.renew(client, node, reply, bug),
            Action::Release(client, node) => world.release(client, node, bug),
            Action::Postpone(client, late) => world.postpone(client, late),
            Action::Deliver(node) => world.deliver(node, bug),
            Action::TakePen(client) => world.take_pen(client),
            Action::Write(client) => world.write(client, bug),
            Action::Lose(client) => world.lose(client),
            Action::Expire(node) => world.nodes[node].expire(),
            Action::Replicate(from) => world.replicate(from),
            Action::Rejoin(node) => world.rejoin(node),
            Action::RestoreSource => world.restore_source(),
            Action::Flush(_)
            | Action::EvictFence(_)
            | Action::Restart(_)
            | Action::RestartEmpty(_)
            | Action::Promote(_) => fault(&mut world, action),
        }
        world.forget();
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "no lower token writes after a higher one",
                |_, world: &World| world.broken != Some(Broken::StaleWrite),
            ),
            Property::always("tokens of grants rise", |_, world: &World| {
                world.broken != Some(Broken::TokenFell)
            }),
            Property::always("one live owner on each server", |_, world: &World| {
                world.nodes.iter().all(|node| node.live_owners() <= 1)
            }),
            Property::always("a lost lease never writes", |_, world: &World| {
                world.broken != Some(Broken::LostLeaseWrote)
            }),
            Property::always("a grant is above its floor", |_, world: &World| {
                world.broken != Some(Broken::BelowFloor)
            }),
            // The others would hold in an empty world too.
            Property::sometimes("two clients believe to hold", |_, world: &World| {
                world
                    .clients
                    .iter()
                    .filter(|client| holds(client.phase))
                    .count()
                    > 1
            }),
            Property::sometimes("a paused holder is overtaken", |_, world: &World| {
                world
                    .clients
                    .iter()
                    .any(|client| world.is_overtaken(client))
            }),
            Property::sometimes("who was refused comes back above", |_, world: &World| {
                world.clients.iter().any(is_healed)
            }),
            Property::sometimes(
                "both servers go on in epochs of their own",
                |_, world: &World| {
                    let [one, other] = &world.nodes;
                    let both = one.is_primary && other.is_primary;
                    both && one.epoch_in_use() > 0 && other.epoch_in_use() > one.epoch_in_use()
                },
            ),
        ]
    }
}

/// Holds again after a refused write, with a token above the one it was refused for.
fn is_healed(client: &Client) -> bool {
    let Phase::Holding(token) = client.phase else {
        return false;
    };
    client.floor.is_some_and(|floor| token.is_above(floor))
}

fn holds(phase: Phase) -> bool {
    matches!(phase, Phase::Holding(_))
}

fn client_actions(world: &World, client: usize, actions: &mut Vec<Action>) {
    let primaries = || (0..NODES).filter(|node| world.nodes[*node].is_primary);
    let may_stay = world.left.late > 0 && world.late.is_none();
    let at = &world.clients[client];
    let late = match at.phase {
        Phase::Idle | Phase::Drawing { .. } => None,
        Phase::Asking(owner) => Some(Late::Acquire {
            owner,
            floor: at.floor,
        }),
        Phase::Installing { epoch, ask, .. } => Some(Late::Install { epoch, ask }),
        Phase::Holding(token) => Some(Late::Renew(token)),
    };
    actions.extend(
        late.filter(|_| may_stay)
            .map(|late| Action::Postpone(client, late)),
    );
    match at.phase {
        Phase::Idle if world.left.grants == 0 => {}
        Phase::Idle | Phase::Asking(_) => {
            // A refusal changes nothing but the count of tries.
            let open = primaries().filter(|node| world.nodes[*node].may_answer(at.phase));
            for node in open {
                actions.push(Action::Acquire(client, node, Reply::Seen));
                if world.left.late > 0 {
                    actions.push(Action::Acquire(client, node, Reply::Lost));
                }
            }
        }
        Phase::Drawing { .. } => actions.push(Action::Draw(client)),
        Phase::Installing { .. } => actions.push(Action::Install(client)),
        Phase::Holding(token) => {
            for node in primaries() {
                actions.push(Action::Renew(client, node, Reply::Seen));
                actions.push(Action::Renew(client, node, Reply::Lost));
                actions.push(Action::Release(client, node));
            }
            if may_stay {
                actions.push(Action::Postpone(client, Late::Release(token)));
            }
            actions.push(Action::TakePen(client));
            actions.push(Action::Lose(client));
        }
    }
    if at.pen.is_some() {
        actions.push(Action::Write(client));
    }
}

fn node_actions(world: &World, node: usize, actions: &mut Vec<Action>) {
    actions.push(Action::Expire(node));
    let other_follows = !world.nodes[1 - node].is_primary;
    if world.left.faults > 0 {
        let joined = if other_follows {
            Action::Replicate(node)
        } else {
            Action::Rejoin(node)
        };
        actions.push(joined);
        actions.push(Action::Flush(node));
        actions.push(Action::EvictFence(node));
        actions.push(Action::Restart(node));
        actions.push(Action::RestartEmpty(node));
        if other_follows {
            actions.push(Action::Promote(1 - node));
        }
    }
}

fn fault(world: &mut World, action: Action) {
    world.left.faults -= 1;
    match action {
        Action::Flush(node) => world.nodes[node].flush(),
        Action::EvictFence(node) => world.nodes[node].evict_fence(),
        Action::Restart(node) => {
            let run = world.next_run();
            world.nodes[node].restart(run);
        }
        Action::RestartEmpty(node) => {
            let run = world.next_run();
            world.nodes[node].restart(run);
            world.nodes[node].flush();
        }
        Action::Promote(node) => world.promote(node),
        other => unreachable!("{other:?} is no fault"),
    }
}

/// Visits every state within `bounds`.
fn explore(bounds: Bounds) -> impl Checker<Leases> {
    let model = Leases {
        bug: None,
        bounds,
        restores: false,
    };
    let explored = model.checker().spawn_bfs().join();
    let states = explored.unique_state_count();
    let depth = explored.max_depth();
    say(&format!(
        "{states} states to a depth of {depth}: {bounds:?}"
    ));
    explored
}

/// Into the output of the test, which shows how much was looked at.
fn say(line: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// What must never be seen, and was.
fn failures(explored: &impl Checker<Leases>) -> Vec<&'static str> {
    let properties = explored.model().properties();
    let properties = properties
        .iter()
        .filter(|property| property.expectation.discovery_is_failure());
    properties
        .map(|property| property.name)
        .filter(|name| explored.discovery(name).is_some())
        .collect()
}

const fn bounds(grants: u8, faults: u8, late: u8) -> Bounds {
    Bounds {
        grants,
        faults,
        late,
        restored: false,
    }
}

#[test]
fn two_grants_and_a_fault_in_every_order() {
    let explored = explore(bounds(2, 1, 0));
    assert_eq!(failures(&explored), [""; 0]);
    for seen in [
        "two clients believe to hold",
        "a paused holder is overtaken",
        "both servers go on in epochs of their own",
    ] {
        assert!(
            explored.discovery(seen).is_some(),
            "{seen}: not in this world"
        );
    }
}

#[test]
fn three_grants_without_a_fault_in_every_order() {
    let explored = explore(bounds(3, 0, 0));
    assert_eq!(failures(&explored), [""; 0]);
    let healed = explored.discovery("who was refused comes back above");
    assert!(healed.is_some());
}
