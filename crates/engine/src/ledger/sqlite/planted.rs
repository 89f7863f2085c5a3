//! Bugs planted on purpose in the SQLite ledger, so that a rig can be seen to catch them
//! (assurance.md 6). Without the feature `planted` none can be chosen and the checks vanish.

/// A bug that can be planted in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedLedger {
    /// The writer's memory keeps a batch whose commit failed, and answers on.
    MemoryAhead,
    /// A commit that failed is tried again, and what the second try says is believed.
    FsyncRetry,
    /// Answers while the batch is still open.
    AckBeforeCommit,
    /// `synchronous=NORMAL`.
    SyncNormal,
    /// Accepts a shortened log.
    NoHighWater,
    /// The idempotency record gets a commit of its own.
    KeyOutsideCommit,
    /// Another body under the same key gets the old answer.
    KeyNoFingerprint,
}

impl PlantedLedger {
    /// Every planted bug.
    pub const ALL: [Self; 7] = [
        Self::MemoryAhead,
        Self::FsyncRetry,
        Self::AckBeforeCommit,
        Self::SyncNormal,
        Self::NoHighWater,
        Self::KeyOutsideCommit,
        Self::KeyNoFingerprint,
    ];

    /// The name of assurance.md 6.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryAhead => "memory-ahead",
            Self::FsyncRetry => "fsync-retry",
            Self::AckBeforeCommit => "ack-before-commit",
            Self::SyncNormal => "sync-normal",
            Self::NoHighWater => "no-high-water",
            Self::KeyOutsideCommit => "key-outside-commit",
            Self::KeyNoFingerprint => "key-no-fingerprint",
        }
    }
}
