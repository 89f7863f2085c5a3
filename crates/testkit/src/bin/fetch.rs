//! Finds or fetches every program the tests start, and prints the lines that tell the tests their
//! paths (`export SOLDONCE_NODE='..'`). It reports what it does on standard error. With `long`
//! also those that only the exhibits of `./test long` need.

use std::path::Path;

use anyhow::Result;
use soldonce_testkit::{
    BROWSER_TESTS, LONG_TOOLS, Machine, PEER, STRIPE_SDK, TOOLS, install_node_packages, provide,
    workspace,
};

fn main() -> Result<()> {
    let machine = Machine::here(report)?;
    let is_long = std::env::args().nth(1).is_some_and(|mode| mode == "long");
    for tool in TOOLS.iter().chain(LONG_TOOLS.iter().filter(|_| is_long)) {
        let path = provide(tool, &machine)?;
        report(&format!("{}: {}", tool.name, path.display()));
        if tool.name == "node" {
            for folder in [BROWSER_TESTS, PEER, STRIPE_SDK] {
                install_node_packages(&machine, &path, &workspace()?.join(folder))?;
            }
        }
        export(&tool.variable(), &path);
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a program's report to people")]
fn report(line: &str) {
    eprintln!("   {line}");
}

#[expect(clippy::print_stdout, reason = "the lines that ./test evaluates")]
fn export(variable: &str, path: &Path) {
    println!("export {variable}='{}'", path.display());
}
