//! What private servers have in common: a folder and ports of their own, a process that ends with
//! the test, and ways to stop, kill and cut it off.

mod account;
mod folder;
mod intake;
mod port;
mod process;
mod site;
mod wait;

pub(crate) use account::Account;
pub(crate) use folder::Folder;
pub use folder::TempFolder;
pub(crate) use intake::{Intake, Request};
pub use port::Port;
pub(crate) use process::Process;
pub(crate) use site::{Site, close_bridge_port, make_bridge, open_bridge_port};
pub(crate) use wait::off_the_runtime;
pub use wait::{PATIENCE, runtime, until, until_some};
