//! Every named statement fits the schema.

use rusqlite::StatementStatus;

use super::connection;
use super::folder::Folder;
use super::{correct, tables, verify};

#[test]
fn every_statement_prepares_on_a_migrated_database() {
    let folder = std::env::temp_dir().join(format!("soldonce-statements-{}", std::process::id()));
    let opened = Folder::new(&folder);
    let lock = opened.take().unwrap();
    let connection = connection::writer(&opened).unwrap();
    let all = [
        tables::statements(),
        verify::statements(),
        correct::STATEMENTS.to_vec(),
    ]
    .concat();
    for sql in all {
        let name = sql.lines().next().unwrap_or_default();
        assert!(name.starts_with("-- "), "{sql}");
        assert!(
            connection.prepare(sql).is_ok(),
            "{:?}",
            connection.prepare(sql).err()
        );
    }
    drop((connection, lock));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Asserts that SQLite plans no statement again for each value of a parameter: planning costs more
/// than running it.
#[test]
fn no_statement_is_prepared_again_for_other_values() {
    let folder = std::env::temp_dir().join(format!("soldonce-again-{}", std::process::id()));
    let opened = Folder::new(&folder);
    let lock = opened.take().unwrap();
    let connection = connection::writer(&opened).unwrap();
    for sql in tables::statements() {
        let mut statement = connection.prepare(sql).unwrap();
        for value in [1_i64, 2, 3] {
            for parameter in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(parameter, value).unwrap();
            }
            // It does not matter whether it finds or changes anything, or is refused.
            drop(statement.raw_query().next());
        }
        let again = statement.get_status(StatementStatus::RePrepare);
        assert_eq!(again, 0, "{sql}");
    }
    drop((connection, lock));
    std::fs::remove_dir_all(folder).unwrap();
}
