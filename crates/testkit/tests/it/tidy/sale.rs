//! One file makes a unit SOLD: a reader who knows it knows every sale.

use super::source::{SourceFile, Violation};

const SALE: &str = "crates/core/src/inventory/sale.rs";

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    if !file.path.starts_with("crates/core/src/") || file.path == SALE || file.is_test() {
        return Vec::new();
    }
    let lines = (1..).zip(file.text.lines());
    let sells = lines.filter(|(_, line)| line.contains("to: UnitState::Sold("));
    sells
        .map(|(line, _)| file.violation(line, format!("sell units in {SALE} alone")))
        .collect()
}

#[test]
fn catches_a_sale_in_another_file() {
    let text = "let step = Step { to: UnitState::Sold(booking), fence };";
    let count = |path| check(&SourceFile::planted(path, text)).len();
    assert_eq!(count("crates/core/src/inventory/extend.rs"), 1);
    assert_eq!(count(SALE), 0);
}
