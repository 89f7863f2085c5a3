//! Where a name is stored: its shard, and the keys of that shard. All keys of one script share one
//! hash tag, so they share one slot of a cluster for all names. `lease.md` 6.1.

use std::borrow::Cow;
use std::fmt;

use crate::backend::Names;
use crate::{Name, Namespace};

/// The layout of the keys of a namespace. All processes of a namespace on one backend agree on it,
/// because it is not a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyScheme {
    /// One server: one fence record, and enough channels that a process receives few messages that
    /// it does not wait for.
    Server,
    /// Slots of a cluster: each has a fence record and a channel.
    Slots,
}

impl KeyScheme {
    const fn shards(self) -> u16 {
        match self {
            KeyScheme::Server => 16,
            KeyScheme::Slots => 64,
        }
    }
}

/// The number of slots of a Redis Cluster.
#[cfg(any(test, feature = "cluster"))]
const SLOTS: u16 = 16_384;

/// One part of a namespace: its names share a channel, and in a cluster a fence record and a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Shard(u16);

impl Shard {
    pub(super) const fn index(self) -> u16 {
        self.0
    }
}

/// A name, with the group that it is in.
pub(super) type NameIn<'a> = (Option<&'a Name>, &'a Name);

/// A key by its parts, which is written into a command without a text of its own.
#[derive(Clone, Copy, Default)]
pub(super) struct Key<'a> {
    head: &'a str,
    kind: &'a str,
    group: Option<&'a Name>,
    name: &'a str,
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.head)?;
        f.write_str(self.kind)?;
        if let Some(group) = self.group {
            f.write_str(group.as_str())?;
            f.write_str("/")?;
        }
        f.write_str(self.name)
    }
}

#[derive(Debug)]
pub(super) struct Keyspace {
    namespace: Namespace,
    scheme: KeyScheme,
    /// The prefix of all keys of each shard. Every call needs some, and to format numbers is slow.
    heads: Vec<String>,
}

impl Keyspace {
    pub(super) fn new(namespace: &Namespace, scheme: KeyScheme) -> Self {
        let heads = (0..scheme.shards()).map(|shard| format!("sl:{{{namespace}.{shard:02x}}}:"));
        Self {
            namespace: namespace.clone(),
            scheme,
            heads: heads.collect(),
        }
    }

    pub(super) fn shards(&self) -> u16 {
        self.scheme.shards()
    }

    /// Computes the cluster slot of every key of the shard.
    #[cfg(feature = "cluster")]
    pub(super) fn slot(&self, shard: Shard) -> u16 {
        crc16(format!("{}.{:02x}", self.namespace, shard.0).as_bytes()) % SLOTS
    }

    pub(super) fn shard_of(&self, key: &Name) -> Shard {
        self.shard_of_bytes(key.as_str().as_bytes())
    }

    pub(super) fn shard_of_bytes(&self, key: &[u8]) -> Shard {
        Shard(crc16(key) % self.scheme.shards())
    }

    /// Returns the hash tag of the shard, braces included.
    pub(super) fn tag(&self, shard: Shard) -> String {
        format!("{{{}.{:02x}}}", self.namespace, shard.0)
    }

    /// Computes the shard of a grant; that of an empty one is never asked for.
    pub(super) fn shard_of_names(&self, names: &Names) -> Shard {
        let key = names.routing_key();
        key.map_or(Shard(0), |key| self.shard_of(key))
    }

    fn key<'a>(&'a self, shard: Shard, kind: &'a str) -> Key<'a> {
        // Each shard has one.
        let head = self.heads.get(usize::from(shard.0));
        Key {
            head: head.map_or("", String::as_str),
            kind,
            ..Key::default()
        }
    }

    /// Returns the key of the fence record of the shard's names, the only key that does not expire.
    pub(super) fn fence(&self, shard: Shard) -> Key<'_> {
        self.key(self.shard_of_fence(shard), "f")
    }

    /// Returns the key that exists while a fair queue of any of these names has a waiter.
    pub(super) fn mark(&self, shard: Shard) -> Key<'_> {
        self.key(self.shard_of_fence(shard), "m")
    }

    /// Returns the shard that has the fence record of this shard's names.
    fn shard_of_fence(&self, shard: Shard) -> Shard {
        match self.scheme {
            KeyScheme::Server => Shard::default(),
            KeyScheme::Slots => shard,
        }
    }

    /// Returns the channel on which releases of the shard's names are published.
    pub(super) fn channel(&self, shard: Shard) -> Key<'_> {
        self.key(shard, "w")
    }

    pub(super) fn lease<'a>(&'a self, shard: Shard, name: NameIn<'a>) -> Key<'a> {
        self.named(shard, "l:", name)
    }

    pub(super) fn queue<'a>(&'a self, shard: Shard, name: NameIn<'a>) -> Key<'a> {
        self.named(shard, "q:", name)
    }

    /// Returns the key of the last token that this node granted for a name, for Redlock.
    #[cfg(feature = "redlock")]
    pub(super) fn record<'a>(&'a self, shard: Shard, name: NameIn<'a>) -> Key<'a> {
        self.named(shard, "t:", name)
    }

    fn named<'a>(&'a self, shard: Shard, kind: &'a str, (group, name): NameIn<'a>) -> Key<'a> {
        Key {
            group,
            name: name.as_str(),
            ..self.key(shard, kind)
        }
    }
}

/// Returns the topic that a release publishes and waiters listen for: a name, or a whole group with
/// a slash, which no name can hold. A message holds topics with [`TOPICS_APART`] between them.
pub(super) fn topic(names: &Names) -> Cow<'_, str> {
    match (names.group(), names.routing_key()) {
        (Some(group), _) => Cow::Owned(format!("{group}/")),
        (None, name) => Cow::Borrowed(name.map_or("", Name::as_str)),
    }
}

/// Separates the topics of a message; no name can hold it.
pub(super) const TOPICS_APART: char = ' ';

/// Computes CRC-16/XMODEM, with which Redis Cluster maps a hash tag to its slot (Redis Cluster
/// specification, key distribution model).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        let [high, _] = crc.to_be_bytes();
        let step = CRC_STEPS.get(usize::from(high ^ byte)).copied();
        (crc << 8) ^ step.unwrap_or_default()
    })
}

/// The CRC table by byte: every call hashes its whole name.
#[expect(clippy::indexing_slicing, reason = "done by the compiler")]
static CRC_STEPS: [u16; 256] = {
    let mut steps = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte << 8, 0);
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            bit += 1;
        }
        steps[byte as usize] = crc;
        byte += 1;
    }
    steps
};

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("legal")
    }

    fn keyspace(scheme: KeyScheme) -> Keyspace {
        Keyspace::new(&Namespace::new("app").expect("legal"), scheme)
    }

    #[test]
    fn crc_is_the_one_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
    }

    #[test]
    fn keys_of_a_grant_share_one_tag_in_a_cluster() {
        let keys = keyspace(KeyScheme::Slots);
        let group = name("hall");
        let shard = keys.shard_of(&group);
        let tag = format!("sl:{{app.{:02x}}}:", shard.index());
        for text in ["A-1", "A-2", "x"] {
            let seat = name(text);
            let key = keys.lease(shard, (Some(&group), &seat));
            assert_eq!(key.to_string(), format!("{tag}l:hall/{text}"));
        }
        assert_eq!(keys.fence(shard).to_string(), format!("{tag}f"));
        assert_eq!(keys.mark(shard).to_string(), format!("{tag}m"));
        let x = name("x");
        let queue = keys.queue(shard, (None, &x));
        assert_eq!(queue.to_string(), format!("{tag}q:x"));
    }

    #[test]
    fn a_server_has_one_fence_record() {
        let keys = keyspace(KeyScheme::Server);
        for text in ["A-1", "A-2", "x"] {
            let shard = keys.shard_of(&name(text));
            assert_eq!(keys.fence(shard).to_string(), "sl:{app.00}:f");
            assert_eq!(keys.mark(shard).to_string(), "sl:{app.00}:m");
        }
    }

    #[test]
    fn names_spread_over_the_shards() {
        for scheme in [KeyScheme::Server, KeyScheme::Slots] {
            let keys = keyspace(scheme);
            let met: std::collections::BTreeSet<_> = (0..2_000)
                .map(|i| keys.shard_of(&name(&format!("report:{i}"))))
                .collect();
            assert_eq!(met.len(), usize::from(scheme.shards()));
        }
    }
}
