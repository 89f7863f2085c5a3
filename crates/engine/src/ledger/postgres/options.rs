//! Where the database is, how it is used, and why it cannot be used.

/// Connections of a server by default.
const CONNECTIONS: usize = 8;

/// Where the database is and how it is used.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:5432/database`, or `host=.. user=.. dbname=..`.
    pub url: String,
    /// Most connections of this server.
    pub connections: usize,
    /// How statements are sent.
    pub statements: Statements,
    /// What the database must promise.
    pub durability: Durability,
    /// Whose clock decides.
    pub time: TimeSource,
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statements {
    /// Prepared once for each connection.
    #[default]
    Prepared,
    /// Sent whole, each time: for a pool in transaction mode that does not keep prepared ones.
    Unprepared,
}

/// What the database must promise of a commit that it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// That it survives a power cut: `fsync`, `full_page_writes` and `synchronous_commit` are on.
    #[default]
    Required,
    /// Nothing: for tests.
    Waived,
}

/// Whose clock decides (T1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The database's.
    #[default]
    Database,
    /// The one that is given to [`PostgresLedger::open`](super::PostgresLedger::open): for tests.
    Given,
}

impl PostgresOptions {
    /// Creates options for the database at this address, with defaults for all else.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: CONNECTIONS,
            statements: Statements::default(),
            durability: Durability::default(),
            time: TimeSource::default(),
        }
    }
}

impl std::fmt::Debug for PostgresOptions {
    /// Leaves the address out, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections", &self.connections)
            .field("statements", &self.statements)
            .field("durability", &self.durability)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// Why the ledger does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error("the database address is illegal: {0}; write postgres://user@host:5432/database")]
    Address(String),
    /// The server does not answer, or refuses the connection.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// The server takes no writes: it is a standby, or is set to read only.
    #[error(
        "the database takes no writes: it is a standby (give the address of the primary), or \
         `default_transaction_read_only` is on there, as providers set it when storage is full"
    )]
    Standby,
    /// The tables are not those of this version.
    #[error("the database has schema {found}, this program knows {known}: {fix}")]
    Schema {
        /// The schema found; 0 is none.
        found: i64,
        /// The newest one of this program.
        known: i64,
        fix: &'static str,
    },
    /// A setting of the database loses acknowledged commits.
    #[error("the database has {setting} = {value}: what it acknowledges may be lost; set it to on")]
    Unsafe { setting: String, value: String },
    /// The start times of servers' transactions are not visible: the feed keeps its order by them.
    #[error("the database has track_activities = off: the feed would lose its order; set it to on")]
    Untracked,
    /// Transactions see one snapshot by default, and a pool keeps servers from changing that.
    #[error(
        "the database has default_transaction_isolation = {found}, which a pool keeps servers from changing: \
         set it to 'read committed' for their role or the pool"
    )]
    Isolation { found: String },
    /// A guard that refuses a second sale is missing, or not at work.
    #[error(
        "the database lacks `{missing}`, or has it switched off or in another form: it would not refuse a second \
         sale. `soldonce migrate` makes triggers anew, the migrations say what a key or a check is. Run `soldonce verify` \
         before you sell"
    )]
    Guards { missing: String },
    /// Anything else: a stored row is illegal or unreadable, or a step failed, as the text says.
    #[error("the ledger cannot be opened: {0}")]
    Failed(String),
}
