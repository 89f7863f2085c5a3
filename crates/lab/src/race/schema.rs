//! The race's own schemas: they touch no existing table, and are dropped at the end.

use anyhow::{Context, bail};
use deadpool_postgres::tokio_postgres::types::Type;

use super::pool::Pool;
use crate::kit::random_name;

/// Prefix of the names of all schemas of a race.
const PREFIX: &str = "soldonce_lab_";
/// Suffix of the name of the schema with guarded tables.
const GUARDED: &str = "_guarded";

const SETTINGS: &str = "-- lab_settings
SELECT concat_ws(', ',
    'PostgreSQL ' || current_setting('server_version'),
    'fsync ' || current_setting('fsync'),
    'synchronous_commit ' || current_setting('synchronous_commit'),
    'deadlock_timeout ' || current_setting('deadlock_timeout'))";

/// Two schemas of a database: that of the ledger, and one for tables with guards.
pub(super) struct Schema {
    name: String,
    /// With the schema as search path.
    pub(super) url: String,
    /// With the one of guarded tables.
    pub(super) guarded_url: String,
    pool: Pool,
}

impl Schema {
    /// Creates both under a random name.
    pub(super) async fn make(database: &str) -> anyhow::Result<Self> {
        let name = format!("{PREFIX}{}", random_name());
        let url = within(database, &name)?;
        let guarded_url = within(database, &format!("{name}{GUARDED}"))?;
        let pool = Pool::new(&url, 1)?;
        // The name is made of letters and digits: no input is in it.
        let create =
            format!("-- lab_create_schema\nCREATE SCHEMA {name}; CREATE SCHEMA {name}{GUARDED}");
        let made = pool.get().await?.batch_execute(&create).await;
        made.context(
            "the race may not make a schema of its own: GRANT CREATE ON DATABASE to its \
             user, or leave --database-url out for a private server",
        )?;
        Ok(Self {
            name,
            url,
            guarded_url,
            pool,
        })
    }

    /// Reads the version of the server and the settings that decide what a commit costs.
    pub(super) async fn describe(&self) -> anyhow::Result<String> {
        let connection = self.pool.get().await?;
        let row = connection
            .query_typed(SETTINGS, &[] as &[(&_, Type)])
            .await?;
        let row = row.first().context("the database has no settings")?;
        Ok(row.try_get(0)?)
    }

    pub(super) async fn drop(self) -> anyhow::Result<()> {
        let Self { name, pool, .. } = self;
        let drop = format!("-- lab_drop_schema\nDROP SCHEMA {name}, {name}{GUARDED} CASCADE");
        let dropped = pool.get().await?.batch_execute(&drop).await;
        dropped.with_context(|| format!("the schema {name} is left behind: drop it by hand"))
    }
}

/// Adds the schema to the address as its search path.
fn within(database: &str, schema: &str) -> anyhow::Result<String> {
    if database.contains("options=") {
        bail!("--database-url: leave `options` out, the race sets its own");
    }
    let is_url = database.contains("://");
    Ok(match (is_url, database.contains('?')) {
        (true, true) => format!("{database}&options=-c%20search_path%3D{schema}"),
        (true, false) => format!("{database}?options=-c%20search_path%3D{schema}"),
        (false, _) => format!("{database} options='-c search_path={schema}'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_gets_the_search_path() {
        let options = |database: &str| {
            let url = within(database, "soldonce_lab_1").unwrap();
            let config: deadpool_postgres::tokio_postgres::Config = url.parse().unwrap();
            (
                config.get_dbname().unwrap().to_owned(),
                config.get_options().unwrap().to_owned(),
            )
        };
        let expected = (
            "shop".to_owned(),
            "-c search_path=soldonce_lab_1".to_owned(),
        );
        for database in [
            "postgres://me:secret@db:5432/shop",
            "postgres://me@db/shop?connect_timeout=3",
            "host=db user=me dbname=shop",
        ] {
            assert_eq!(options(database), expected, "{database}");
        }
        assert!(within("postgres://db/shop?options=-c%20a", "x").is_err());
    }
}
