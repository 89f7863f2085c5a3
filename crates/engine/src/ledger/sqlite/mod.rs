//! The SQLite ledger.
