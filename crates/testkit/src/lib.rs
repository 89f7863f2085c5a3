//! soldonce-testkit
