//! Every state with every command (model.md 3 to 5), as tables: a row for a state, a column for a
//! command, in each cell what the pair answers.

mod bookings;
mod holds;
mod units;

use soldonce_core::{Applied, Effect, Rejection};

/// A table of what every state answers to every command, with columns as wide as they need.
fn table<S: Copy, C: Copy>(
    states: &[(&str, S)],
    commands: &[(&str, C)],
    answer: impl Fn(S, C) -> String,
) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(commands.iter().map(|(name, _)| (*name).to_owned()));
    for (name, state) in states {
        let mut row = vec![(*name).to_owned()];
        row.extend(commands.iter().map(|(_, command)| answer(*state, *command)));
        rows.push(row);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=commands.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Compares a table with the one that is expected, and shows where they differ.
fn expect_table(found: &str, expected: &str) {
    let expected = expected.trim_matches('\n');
    if found == expected {
        return;
    }
    let differing: Vec<String> = found
        .lines()
        .zip(expected.lines())
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("expected  {expected}\nfound     {found}"))
        .collect();
    let differing = differing.join("\n");
    panic!("{differing}\nthe whole table is now:\n{found}\n");
}

/// The code of a refusal, or what the command left behind.
fn outcome(result: &Result<Applied, Rejection>, state: impl Fn(&Applied) -> String) -> String {
    match result {
        Err(rejection) => rejection.code().to_owned(),
        Ok(applied) => {
            let effects = applied.effects.iter().map(|effect| match effect {
                Effect::Authorise(_) => " +authorise".to_owned(),
                Effect::Capture(_) => " +capture".to_owned(),
                Effect::Void(_) => " +void".to_owned(),
                Effect::Refund { amount, .. } => format!(" +refund {}", amount.minor()),
                Effect::CancelIntent(_) => " +cancel".to_owned(),
            });
            state(applied) + &effects.collect::<String>()
        }
    }
}
