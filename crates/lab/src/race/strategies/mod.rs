//! Every strategy that can race, in the sequence of the story: what goes wrong, what a database can
//! do about it, locks beside the database, the default. A new one is an entry here and a kind below.

mod story;

use std::sync::Arc;

use anyhow::{Context, bail};
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy as Way};

use super::contender::{Contender, Naive, Product, Unsorted};
use super::ground::Ground;
use super::judge::Promise;

pub(super) use self::story::STRATEGIES;

/// One strategy.
pub(super) struct Strategy {
    /// As on the command line.
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    /// What it does, in a line.
    pub(super) mechanism: &'static str,
    /// Why it holds or breaks, in a few sentences.
    pub(super) why: &'static str,
    kind: Kind,
}

/// Servers beside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Redis,
    Redlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Naive,
    Unsorted,
    Pessimistic,
    NoWait,
    Optimistic,
    Constraint,
    Lease,
    Redlock,
    Queue,
}

impl Strategy {
    /// Those of these names; `all` is every one.
    ///
    /// # Errors
    /// Names what is unknown and what is known.
    pub(super) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Self>> {
        #[cfg(feature = "planted")]
        if names == [story::PLANTED.name] {
            return Ok(vec![&story::PLANTED]);
        }
        if names.iter().any(|name| name == "all") {
            return Ok(STRATEGIES.iter().collect());
        }
        let unknown = names
            .iter()
            .find(|name| STRATEGIES.iter().all(|known| known.name != name.as_str()));
        if let Some(unknown) = unknown {
            let known: Vec<_> = STRATEGIES.iter().map(|known| known.name).collect();
            bail!(
                "--strategies {unknown}: known are all, {}",
                known.join(", ")
            );
        }
        // In the sequence of the table, each once, however they were named.
        let is_named = |known: &&Self| names.iter().any(|name| name == known.name);
        Ok(STRATEGIES.iter().filter(is_named).collect())
    }

    /// Whether it makes holds, which are confirmed later: the lab's own strategies sell at once.
    pub(super) fn has_holds(&self) -> bool {
        !matches!(self.kind, Kind::Naive | Kind::Unsorted)
    }

    /// What it needs beside the database.
    pub(super) fn needs(&self) -> Needs {
        match self.kind {
            Kind::Lease => Needs::Redis,
            Kind::Redlock => Needs::Redlock,
            Kind::Naive
            | Kind::Unsorted
            | Kind::Pessimistic
            | Kind::NoWait
            | Kind::Optimistic
            | Kind::Constraint
            | Kind::Queue => Needs::Nothing,
        }
    }

    /// Makes it ready.
    ///
    /// # Errors
    /// When the database or the servers beside it refuse.
    pub(super) async fn open(&self, ground: &Ground) -> anyhow::Result<Arc<dyn Contender>> {
        let opened = self.try_open(ground).await;
        opened.with_context(|| format!("strategy {} does not start", self.name))
    }

    async fn try_open(&self, ground: &Ground) -> anyhow::Result<Arc<dyn Contender>> {
        let way = match self.kind {
            Kind::Naive => return Ok(Arc::new(Naive::open(ground.pool()?).await?)),
            Kind::Unsorted => return Ok(Arc::new(Unsorted::open(ground.pool()?).await?)),
            Kind::Pessimistic => Way::Pessimistic,
            Kind::NoWait => Way::NoWait,
            Kind::Optimistic => Way::Optimistic,
            Kind::Constraint => Way::Constraint,
            Kind::Lease => Way::Lease(ground.redis().await?),
            Kind::Redlock => Way::Redlock(ground.redlock().await?),
            Kind::Queue => Way::Queue,
        };
        let options = PostgresOptions {
            strategy: way,
            ..ground.options()
        };
        Ok(Arc::new(Product::open(&options).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_chosen_once_and_in_the_sequence_of_the_table() {
        let chosen = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let chosen = Strategy::chosen(&names)?;
            anyhow::Ok(chosen.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(
            chosen(&["queue", "naive", "queue"]).unwrap(),
            ["naive", "queue"]
        );
        assert_eq!(chosen(&["all"]).unwrap().len(), 9);
        let error = chosen(&["queue", "nave"]).unwrap_err().to_string();
        assert!(
            error.contains("--strategies nave: known are all, naive"),
            "{error}"
        );
    }
}
