//! soldonce-core
