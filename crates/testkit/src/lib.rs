//! What the tests of Soldonce need from the machine they run on: programs, found or fetched, and
//! private servers to inject faults into. Nothing of it runs in `soldonce serve`.

#![expect(
    clippy::missing_errors_doc,
    reason = "tests unwrap; an error says what is missing and how to install it"
)]

mod authority;
pub mod chaos;
pub mod log;
pub mod netns;
pub mod planted;
pub mod player;
pub mod postgres;
pub mod proxy;
pub mod redis;
mod server;
mod tools;
pub mod webhooks;

pub use authority::{Authority, Certificate, Validity};
pub use server::{PATIENCE, Port, TempFolder, runtime, until, until_some};
pub use tools::{BROWSER_TESTS, LONG_TOOLS, Machine, PEER, STRIPE_SDK, Source, TOOLS, Tool};
pub use tools::{find, install_node_packages, program, provide, workspace};
