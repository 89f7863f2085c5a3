//! Finds or fetches every program the tests start, and prints the lines that tell the tests where
//! (`export SOLDONCE_NODE='..'`); what it does goes to standard error.

use std::path::Path;

use anyhow::Result;
use soldonce_testkit::{
    BROWSER_TESTS, Machine, PEER, TOOLS, install_node_packages, provide, workspace,
};

fn main() -> Result<()> {
    let machine = Machine::here(report)?;
    for tool in TOOLS {
        let path = provide(tool, &machine)?;
        report(&format!("{}: {}", tool.name, path.display()));
        if tool.name == "node" {
            for folder in [BROWSER_TESTS, PEER] {
                install_node_packages(&machine, &path, &workspace()?.join(folder))?;
            }
        }
        export(tool.variable, &path);
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
