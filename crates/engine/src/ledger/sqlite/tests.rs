//! Every named statement fits the schema.

use rusqlite::{Connection, StatementStatus};

use super::folder::Folder;
use super::{connection, correct, tables, verify};

/// Checks each of these statements on the database of a new ledger.
fn check(name: &str, statements: Vec<&str>, one: impl Fn(&Connection, &str)) {
    let folder = std::env::temp_dir().join(format!("soldonce-{name}-{}", std::process::id()));
    let opened = Folder::new(&folder);
    let lock = opened.take().unwrap();
    let (connection, _) = connection::writer(&opened).unwrap();
    for sql in statements {
        one(&connection, sql);
    }
    drop((connection, lock));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_statement_prepares_on_a_migrated_database() {
    let all = [
        tables::statements(),
        verify::statements(),
        correct::STATEMENTS.to_vec(),
    ];
    check("statements", all.concat(), |connection, sql| {
        assert!(sql.starts_with("-- "), "{sql}");
        let prepared = connection.prepare(sql);
        assert!(prepared.is_ok(), "{:?}", prepared.err());
    });
}

/// Asserts that SQLite plans no statement again for each value of a parameter: planning costs more
/// than running it.
#[test]
fn no_statement_is_prepared_again_for_other_values() {
    check("again", tables::statements(), |connection, sql| {
        let mut statement = connection.prepare(sql).unwrap();
        for value in [1_i64, 2, 3] {
            for parameter in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(parameter, value).unwrap();
            }
            // It does not matter whether it finds or changes anything, or is refused.
            drop(statement.raw_query().next());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
    });
}
