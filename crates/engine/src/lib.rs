//! soldonce-engine
