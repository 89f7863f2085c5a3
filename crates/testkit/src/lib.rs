//! What the tests of Soldonce need from the machine they run on: programs, found or fetched.
//! Nothing of it runs in `soldonce serve`.

mod tools;

pub use tools::{BROWSER_TESTS, Machine, Source, TOOLS, Tool};
pub use tools::{find, install_node_packages, program, provide, workspace};
