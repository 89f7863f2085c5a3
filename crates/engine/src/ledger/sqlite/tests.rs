//! Every named statement fits the schema.

use super::connection;
use super::folder::Folder;
use super::{tables, verify};

#[test]
fn every_statement_prepares_on_a_migrated_database() {
    let folder = std::env::temp_dir().join(format!("soldonce-statements-{}", std::process::id()));
    let opened = Folder::new(&folder);
    let lock = opened.take().unwrap();
    let connection = connection::writer(&opened).unwrap();
    let all = [tables::statements(), verify::statements()].concat();
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
