//! soldonce-server
