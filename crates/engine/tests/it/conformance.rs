//! Every ledger answers the same.
