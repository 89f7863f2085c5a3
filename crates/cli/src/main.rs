//! The `soldonce` binary.
fn main() {}
