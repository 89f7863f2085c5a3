//! Where a name lives: its shard, and the keys of that shard. All keys of one script share one
//! hash tag, so they share one slot of a cluster for all names. `lease.md` 6.1.

use std::borrow::Cow;

use crate::backend::Names;
use crate::{BackendError, Name, Namespace};

/// Shards of a namespace unless it says otherwise.
pub(super) const SHARDS: u16 = 64;

/// Most shards: two hexadecimal digits.
const SHARDS_MAX: u16 = 256;

/// Slots of a Redis Cluster.
#[cfg(any(test, feature = "cluster"))]
const SLOTS: u16 = 16_384;

/// One part of a namespace: its names share a fence record, a channel and a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Shard(u16);

impl Shard {
    pub(super) const fn index(self) -> u16 {
        self.0
    }
}

/// The keys of one namespace.
#[derive(Debug)]
pub(super) struct Keyspace {
    namespace: Namespace,
    shards: u16,
    /// What all keys of a shard begin with. Every call needs some, and to write numbers is slow.
    heads: Vec<String>,
}

impl Keyspace {
    pub(super) fn new(namespace: &Namespace, shards: u16) -> Result<Self, BackendError> {
        if shards == 0 || shards > SHARDS_MAX {
            let why = format!("{shards} shards; 1 to {SHARDS_MAX} are possible");
            return Err(BackendError::Config(why));
        }
        let heads = (0..shards).map(|shard| head_of(namespace, Shard(shard)));
        Ok(Self {
            namespace: namespace.clone(),
            shards,
            heads: heads.collect(),
        })
    }

    /// How many shards there are.
    #[cfg(feature = "cluster")]
    pub(super) fn shards(&self) -> u16 {
        self.shards
    }

    /// The slot of every key of the shard.
    #[cfg(feature = "cluster")]
    pub(super) fn slot(&self, shard: Shard) -> u16 {
        crc16(format!("{}.{:02x}", self.namespace, shard.0).as_bytes()) % SLOTS
    }

    pub(super) fn shard_of(&self, home: &Name) -> Shard {
        self.shard_of_bytes(home.as_str().as_bytes())
    }

    pub(super) fn shard_of_bytes(&self, home: &[u8]) -> Shard {
        Shard(crc16(home) % self.shards)
    }

    /// The hash tag of the shard, braces included.
    pub(super) fn tag(&self, shard: Shard) -> String {
        format!("{{{}.{:02x}}}", self.namespace, shard.0)
    }

    /// The shard of a grant; that of an empty one is never asked for.
    pub(super) fn shard_of_names(&self, names: &Names) -> Shard {
        names
            .routing_key()
            .map_or(Shard(0), |home| self.shard_of(home))
    }

    fn key(&self, shard: Shard, parts: &[&str]) -> String {
        let head = match self.heads.get(usize::from(shard.0)) {
            Some(head) => Cow::Borrowed(head),
            None => Cow::Owned(head_of(&self.namespace, shard)),
        };
        let room = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut key = String::with_capacity(head.len() + room);
        key.push_str(&head);
        for part in parts {
            key.push_str(part);
        }
        key
    }

    /// The fence record, the only key that does not end by itself.
    pub(super) fn fence(&self, shard: Shard) -> String {
        self.key(shard, &["f"])
    }

    /// The channel on which releases of the shard's names are told.
    pub(super) fn channel(&self, shard: Shard) -> String {
        self.key(shard, &["w"])
    }

    pub(super) fn lease(&self, shard: Shard, group: Option<&Name>, name: &Name) -> String {
        self.named(shard, "l:", group, name)
    }

    pub(super) fn queue(&self, shard: Shard, group: Option<&Name>, name: &Name) -> String {
        self.named(shard, "q:", group, name)
    }

    /// The last token that this node granted for a name, for Redlock.
    #[cfg(feature = "redlock")]
    pub(super) fn record(&self, shard: Shard, group: Option<&Name>, name: &Name) -> String {
        self.named(shard, "t:", group, name)
    }

    fn named(&self, shard: Shard, kind: &str, group: Option<&Name>, name: &Name) -> String {
        match group {
            Some(group) => self.key(shard, &[kind, group.as_str(), "/", name.as_str()]),
            None => self.key(shard, &[kind, name.as_str()]),
        }
    }
}

fn head_of(namespace: &Namespace, shard: Shard) -> String {
    format!("sl:{{{namespace}.{:02x}}}:", shard.0)
}

/// What a release tells on the channel, and what waiters listen for: a name, or a whole group with
/// a slash, which no name can hold.
pub(super) fn topic(names: &Names) -> String {
    match (names.group(), names.routing_key()) {
        (Some(group), _) => format!("{group}/"),
        (None, Some(name)) => name.to_string(),
        (None, None) => String::new(),
    }
}

/// CRC-16/XMODEM, with which Redis Cluster maps a hash tag to its slot (Redis Cluster
/// specification, key distribution model).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        let [high, _] = crc.to_be_bytes();
        let step = CRC_STEPS.get(usize::from(high ^ byte)).copied();
        (crc << 8) ^ step.unwrap_or_default()
    })
}

/// What one byte does to the sum: every call takes it for its whole name.
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

    fn keyspace() -> Keyspace {
        Keyspace::new(&Namespace::new("app").expect("legal"), SHARDS).expect("legal")
    }

    #[test]
    fn crc_is_the_one_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
    }

    #[test]
    fn keys_of_a_grant_share_one_tag() {
        let keys = keyspace();
        let group = name("hall");
        let shard = keys.shard_of(&group);
        let tag = format!("sl:{{app.{:02x}}}:", shard.index());
        for text in ["A-1", "A-2", "x"] {
            let key = keys.lease(shard, Some(&group), &name(text));
            assert_eq!(key, format!("{tag}l:hall/{text}"));
        }
        assert_eq!(keys.fence(shard), format!("{tag}f"));
        assert_eq!(keys.queue(shard, None, &name("x")), format!("{tag}q:x"));
    }

    #[test]
    fn names_spread_over_the_shards() {
        let keys = keyspace();
        let mut met = std::collections::BTreeSet::new();
        for i in 0..2_000 {
            met.insert(keys.shard_of(&name(&format!("report:{i}"))));
        }
        assert_eq!(met.len(), usize::from(SHARDS));
    }

    #[test]
    fn a_number_of_shards_that_cannot_be_written_is_refused() {
        let namespace = Namespace::new("app").expect("legal");
        assert!(Keyspace::new(&namespace, 0).is_err());
        assert!(Keyspace::new(&namespace, 257).is_err());
        assert!(Keyspace::new(&namespace, 256).is_ok());
    }
}
