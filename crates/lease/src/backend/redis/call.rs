//! Builds the calls of scripts: script, keys, arguments, shard.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use redis::{Arg, Cmd, RedisWrite};

use super::keys::{Key, Keyspace, Shard, TOPICS_APART, topic};
use super::script::{Script, Scripts};
use crate::backend::{Acquire, Names, Release, Renew, Waiter};
use crate::limits::BATCH_MAX;
use crate::timing::millis;
use crate::{FencingToken, Name, Owner};

/// A script with its keys and arguments, ready to be sent by its hash.
pub(super) struct Call {
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "one server has all shards")
    )]
    pub(super) shard: Shard,
    pub(super) command: Cmd,
    script: &'static Script,
}

/// Arguments of a command before the number of its keys: its name and the script.
const HEAD: usize = 2;

/// Capacity for the other arguments of most calls, so that a command is not moved while it grows.
const ARGS: usize = 4;
const ARGS_BYTES: usize = 96;

/// Capacity for what most items of a call need in keys and arguments.
const ITEM_ARGS: usize = 4;
const ITEM_BYTES: usize = 128;

impl Call {
    pub(super) fn new(shard: Shard, script: &'static Script, keys: &[impl Display]) -> Self {
        let mut call = Self::of_batch((shard, script), keys.len(), keys.len());
        for key in keys {
            call.key(key);
        }
        call
    }

    /// Builds a call with room for `items`. Its keys come next, `keys` in number.
    fn of_batch((shard, script): (Shard, &'static Script), keys: usize, items: usize) -> Self {
        let (args, room) = (ARGS + items * ITEM_ARGS, ARGS_BYTES + items * ITEM_BYTES);
        let mut command = Cmd::with_capacity(HEAD + args, room);
        command.arg("EVALSHA").arg(script.hash()).arg(keys);
        Self {
            shard,
            command,
            script,
        }
    }

    fn key(&mut self, key: impl Display) {
        self.command.write_arg_fmt(key);
    }

    /// Builds the same call with the text of the script, for a server that does not know its hash.
    pub(super) fn by_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script.text());
        for arg in self.command.args_iter().skip(HEAD) {
            if let Arg::Simple(bytes) = arg {
                command.arg(bytes);
            }
        }
        command
    }
}

/// Renewals of one shard that are sent in one script: for each grant its index in the batch, and
/// how many keys it has.
pub(super) struct RenewPart {
    pub(super) call: Call,
    pub(super) grants: Vec<(usize, usize)>,
}

pub(super) struct Calls {
    pub(super) keys: Arc<Keyspace>,
    pub(super) scripts: &'static Scripts,
    /// Whether grants have tokens.
    pub(super) fenced: bool,
}

impl Calls {
    fn lease_keys<'a>(&'a self, shard: Shard, names: &'a Names) -> impl Iterator<Item = Key<'a>> {
        let key = move |name: &'a Name| self.keys.lease(shard, (names.group(), name));
        names.as_slice().iter().map(key)
    }

    /// Returns the queue key of a name. Groups have no queue, so theirs is always empty.
    fn queue<'a>(&'a self, shard: Shard, names: &'a Names) -> Key<'a> {
        let first = names.as_slice().first().or(names.routing_key());
        let key = first.map(|name| self.keys.queue(shard, (names.group(), name)));
        key.unwrap_or_default()
    }

    fn terms(&self, command: &mut Cmd, ask: &Acquire) {
        command.arg(millis(ask.ttl)).arg(ask.cap.map_or(0, millis));
        match ask.floor {
            _ if !self.fenced => command.arg(""),
            floor => command.arg(floor.map_or(0, FencingToken::number)),
        };
    }

    /// Builds one script for plain acquires of one slot, on the terms of the first. Each asks for one
    /// name, and `asked` is not empty.
    pub(super) fn grant(&self, asked: &[Acquire]) -> Call {
        let shard_of = |ask: &Acquire| self.keys.shard_of_names(&ask.names);
        let shard = asked.first().map(shard_of).unwrap_or_default();
        let script = (shard, &self.scripts.grant);
        let mut call = Call::of_batch(script, asked.len() + 2, asked.len() + 1);
        call.key(self.keys.fence(shard));
        call.key(self.keys.mark(shard));
        for ask in asked {
            for key in self.lease_keys(shard_of(ask), &ask.names) {
                call.key(key);
            }
        }
        if let Some(first) = asked.first() {
            self.terms(&mut call.command, first);
        }
        for ask in asked {
            call.command.arg(hex(ask.owner).as_flattened());
        }
        call
    }

    /// Builds the call for one acquire of any kind, in a script of its own.
    pub(super) fn acquire(&self, ask: &Acquire) -> Call {
        let shard = self.keys.shard_of_names(&ask.names);
        let mut keys = vec![self.keys.fence(shard), self.keys.mark(shard)];
        keys.extend(self.lease_keys(shard, &ask.names));
        let leases = keys.len() - 2;
        if ask.names.group().is_none() {
            keys.push(self.queue(shard, &ask.names));
        }
        let mut call = Call::new(shard, &self.scripts.acquire, &keys);
        let owner = hex(ask.owner);
        call.command.arg(leases).arg(owner.as_flattened());
        self.terms(&mut call.command, ask);
        call.command
            .arg(waiter(ask.waiter))
            .arg(u8::from(ask.fair))
            .arg(&*ask.meta)
            .arg(u8::from(ask.names.is_any()));
        call
    }

    /// Builds a vote for `command` under `token`. A server younger than `least_age` does not vote.
    #[cfg(feature = "redlock")]
    pub(super) fn vote(&self, command: &Acquire, token: u64, least_age: Duration) -> Call {
        let names = &command.names;
        let shard = self.keys.shard_of_names(names);
        let keys = names.as_slice().iter().flat_map(|name| {
            let name = (names.group(), name);
            [self.keys.lease(shard, name), self.keys.record(shard, name)]
        });
        let mut call = Call::new(shard, &self.scripts.rl_acquire, &keys.collect::<Vec<_>>());
        call.command
            .arg(hex(command.owner).as_flattened())
            .arg(millis(command.ttl))
            .arg(command.cap.map_or(0, millis))
            .arg(format!("{token:016}"))
            .arg(millis(least_age))
            .arg(&*command.meta);
        call
    }

    /// Builds the install of `epoch` for `command`, which was answered with `ask`.
    pub(super) fn install(&self, command: &Acquire, epoch: u32, ask: &str) -> Call {
        let shard = self.keys.shard_of_names(&command.names);
        let floor = command.floor.map_or(0, FencingToken::number);
        let mut call = Call::new(shard, &self.scripts.install, &[self.keys.fence(shard)]);
        call.command.arg(epoch).arg(ask).arg(floor);
        call
    }

    /// Builds one script for releases of one slot; `releases` is not empty.
    pub(super) fn release(&self, releases: &[Release]) -> Call {
        let shard_of = |release: &Release| self.keys.shard_of_names(&release.names);
        let shard = releases.first().map(shard_of).unwrap_or_default();
        let names = releases.iter().map(|release| release.names.as_slice());
        let leases = names.map(<[Name]>::len).sum::<usize>();
        let queued = || releases.iter().filter(|release| release.waiter.is_some());
        let script = (shard, &self.scripts.release);
        let mut call = Call::of_batch(script, leases + queued().count(), leases);
        for release in releases {
            for key in self.lease_keys(shard_of(release), &release.names) {
                call.key(key);
            }
        }
        for release in queued() {
            call.key(self.queue(shard_of(release), &release.names));
        }
        call.command.arg(leases);
        for release in releases {
            for _ in release.names.as_slice() {
                prove(&mut call.command, release);
            }
        }
        for release in queued() {
            call.command.arg(waiter(release.waiter));
        }
        for (shard, topics) in self.messages(releases) {
            call.command.write_arg_fmt(self.keys.channel(shard));
            call.command.arg(topics);
        }
        call
    }

    /// Collects the channels and topics to publish if any of the names is released.
    fn messages(&self, releases: &[Release]) -> Vec<(Shard, String)> {
        let mut messages: Vec<(Shard, String)> = Vec::new();
        for release in releases {
            let shard = self.keys.shard_of_names(&release.names);
            let topic = topic(&release.names);
            match messages.iter_mut().find(|(of, _)| *of == shard) {
                Some((_, topics)) => {
                    topics.push(TOPICS_APART);
                    topics.push_str(&topic);
                }
                None => messages.push((shard, topic.into_owned())),
            }
        }
        messages
    }

    pub(super) fn inspect(&self, group: Option<&Name>, name: &Name) -> Call {
        let shard = self.keys.shard_of(group.unwrap_or(name));
        let key = self.keys.lease(shard, (group, name));
        Call::new(shard, &self.scripts.inspect, &[key])
    }

    /// Builds one call for each shard, or more where it has many keys. A grant is never split.
    pub(super) fn renew(&self, batch: &[Renew]) -> Vec<RenewPart> {
        let shard = |renew: &Renew| self.keys.shard_of_names(&renew.names);
        let mut order: Vec<(usize, &Renew)> = batch.iter().enumerate().collect();
        order.sort_by_key(|(_, renew)| shard(renew));
        let mut parts = Vec::new();
        let mut rest = order.as_slice();
        while let Some((_, first)) = rest.first() {
            let of_shard = rest
                .iter()
                .take_while(|(_, renew)| shard(renew) == shard(first));
            let mut keys = 0;
            let fits = of_shard.take_while(|(_, renew)| {
                let before = keys;
                keys += renew.names.as_slice().len();
                before == 0 || keys <= BATCH_MAX
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            parts.push(self.renew_part(shard(first), now));
            rest = later;
        }
        parts
    }

    fn renew_part(&self, shard: Shard, renewals: &[(usize, &Renew)]) -> RenewPart {
        let keys = renewals
            .iter()
            .flat_map(|(_, renew)| self.lease_keys(shard, &renew.names));
        let mut call = Call::new(shard, &self.scripts.renew, &keys.collect::<Vec<_>>());
        for (_, renew) in renewals {
            let owner = hex(renew.owner);
            let token = renew.token.to_string();
            for _ in renew.names.as_slice() {
                let command = call.command.arg(owner.as_flattened());
                command.arg(&token).arg(millis(renew.ttl));
            }
        }
        let grants = renewals
            .iter()
            .map(|(at, renew)| (*at, renew.names.as_slice().len()));
        RenewPart {
            call,
            grants: grants.collect(),
        }
    }
}

/// Computes the 32 digits of an owner, two for each byte.
fn hex(owner: Owner) -> [[u8; 2]; 16] {
    let digit = |half: u8| b'0' + half + half / 10 * (b'a' - b'9' - 1);
    let bytes = owner.expose();
    bytes.map(|byte| [digit(byte >> 4), digit(byte & 15)])
}

fn waiter(waiter: Option<Waiter>) -> String {
    let id = waiter.map(|Waiter(id)| format!("{id:016x}"));
    id.unwrap_or_default()
}

/// Writes the prefix that a stored lease must begin with to be released.
fn prove(command: &mut Cmd, release: &Release) {
    let mut argument = command.writer_for_next_arg();
    // A command is in memory, where a write does not fail.
    argument.write_all(hex(release.owner).as_flattened()).ok();
    argument.write_all(b"|").ok();
    if let Some(token) = release.token {
        write!(argument, "{token}").ok();
    }
}

/// Builds `WAIT`, which counts the replicas that have all that its connection wrote.
pub(super) fn wait(n: u32, within: Duration) -> Cmd {
    let mut command = redis::cmd("WAIT");
    command.arg(n).arg(millis(within));
    command
}
