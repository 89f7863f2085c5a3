//! Finds or fetches every program the tests start, and prints the lines that tell the tests where
//! (`export SOLDONCE_NODE='..'`); what it does goes to standard error.

use std::path::Path;

use anyhow::Result;
use soldonce_testkit::{BROWSER_TESTS, Machine, TOOLS, install_node_packages, provide};

fn main() -> Result<()> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize()?;
    let machine = Machine::new(
        std::env::vars_os(),
        workspace.join("target/test-deps"),
        report,
    );
    for tool in TOOLS {
        let path = provide(tool, &machine)?;
        report(&format!("{}: {}", tool.name, path.display()));
        if tool.name == "node" {
            install_node_packages(&machine, &path, &workspace.join(BROWSER_TESTS))?;
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
