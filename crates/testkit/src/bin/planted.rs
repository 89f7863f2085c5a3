//! Shows that tests detect the bugs they are for. For each patch of `crates/testkit/planted`, or
//! those named as arguments, it builds a copy of the workspace with the patch and runs its tests:
//! each must fail and print its `Says:`. Before that the same tests must pass on the copy
//! without a bug. `./test planted` runs it.

use std::collections::BTreeMap;
use std::process::Output;

use anyhow::{Result, ensure};
use soldonce_testkit::planted::{Patch, RedTest, WorkspaceCopy};
use soldonce_testkit::workspace;

/// The exit code of nextest when a test fails.
const TESTS_FAILED: i32 = 100;

fn main() -> Result<()> {
    let workspace = workspace()?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut patches = Patch::all(&workspace)?;
    for name in &wanted {
        ensure!(
            patches.iter().any(|patch| patch.name == *name),
            "there is no patch {name}"
        );
    }
    patches.retain(|patch| wanted.is_empty() || wanted.contains(&patch.name));
    let copy = WorkspaceCopy::make(&workspace)?;
    let mut of_package: BTreeMap<&str, Vec<(&Patch, &RedTest)>> = BTreeMap::new();
    for patch in &patches {
        for test in &patch.tests {
            let package = of_package.entry(&test.package).or_default();
            package.push((patch, test));
        }
    }
    let mut missed = Vec::new();
    for (package, tests) in of_package {
        if let Err(error) = pass_without_a_bug(&copy, package, &tests) {
            report(&format!("{package}: {error}"));
            missed.extend(tests.iter().map(|(patch, _)| &patch.name));
            continue;
        }
        for (patch, test) in tests {
            let fate = copy.with(patch, || judge(&copy, test))?;
            report(&format!(
                "{:24} {}",
                patch.name,
                fate.as_deref().unwrap_or("caught")
            ));
            missed.extend(fate.map(|_| &patch.name));
        }
    }
    ensure!(missed.is_empty(), "not caught: {missed:?}");
    Ok(())
}

/// Runs tests on the source without a bug. Fails if one of them does.
fn pass_without_a_bug(
    copy: &WorkspaceCopy,
    package: &str,
    tests: &[(&Patch, &RedTest)],
) -> Result<()> {
    build(copy, package)?;
    let tests: Vec<String> = tests.iter().map(|(_, test)| filter(&test.name)).collect();
    let output = copy.nextest(package, &["--filterset", &tests.join(" | ")])?;
    ensure!(output.status.success(), "without a bug:\n{}", text(&output));
    report(&format!("{package}: the tests pass without a bug"));
    Ok(())
}

/// Runs a test on the copy with its bug, and returns why that was not caught; `None` if it was.
fn judge(copy: &WorkspaceCopy, test: &RedTest) -> Result<Option<String>> {
    if let Err(error) = build(copy, &test.package) {
        return Ok(Some(format!("DOES NOT COMPILE: {error}")));
    }
    let output = copy.nextest(&test.package, &["--filterset", &filter(&test.name)])?;
    Ok(match output.status.code() {
        Some(0) => Some(format!("MISSED by {}", test.name)),
        Some(TESTS_FAILED) if text(&output).contains(&test.says) => None,
        _ => Some(format!("FAILED FOR ANOTHER REASON\n{}", text(&output))),
    })
}

fn build(copy: &WorkspaceCopy, package: &str) -> Result<()> {
    let output = copy.nextest(package, &["--no-run"])?;
    ensure!(output.status.success(), "{}", text(&output));
    Ok(())
}

fn filter(test: &str) -> String {
    format!("test(={test})")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[expect(clippy::print_stdout, reason = "a program's report to people")]
fn report(line: &str) {
    println!("{line}");
}
