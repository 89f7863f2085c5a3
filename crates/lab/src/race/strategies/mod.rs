//! Every strategy that can race, in the order of the story: what goes wrong, what a database can do about
//! it, locks beside the database, the product. A new one is an entry here and a kind below.

mod story;

use std::sync::Arc;

use super::contender::{Contender, Product};
use super::environment::Environment;
use super::judge::Promise;
use super::textbook::{
    Constraint, Guards, Lease, Naive, NoWait, Optimistic, Pessimistic, Redlock, Shop, Stoppable,
    Textbook, Unsorted,
};
use anyhow::{Context, bail};

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
    /// What the tables refuse by themselves. The product has tables of its own.
    pub(super) guards: Guards,
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
    pub(super) async fn open(
        &self,
        environment: &Environment,
    ) -> anyhow::Result<Arc<dyn Contender>> {
        let opened = self.try_open(environment).await;
        opened.with_context(|| format!("strategy {} does not start", self.name))
    }

    async fn try_open(&self, environment: &Environment) -> anyhow::Result<Arc<dyn Contender>> {
        let way: Arc<dyn Textbook> = match self.kind {
            Kind::Naive => Arc::new(Naive),
            Kind::Unsorted => Arc::new(Unsorted),
            Kind::Pessimistic => Arc::new(Pessimistic),
            Kind::NoWait => Arc::new(NoWait),
            Kind::Optimistic => Arc::new(Optimistic),
            Kind::Constraint => Arc::new(Constraint),
            Kind::Lease => Arc::new(Lease::connect(&environment.redis_url()?).await?),
            Kind::Redlock => Arc::new(Redlock::connect(&environment.redlock_urls()).await?),
            Kind::Queue => return Ok(Arc::new(Product::open(&environment.options()).await?)),
        };
        Ok(Arc::new(
            Shop::open(way, environment.pool_of(self.guards)?).await?,
        ))
    }

    /// The strategy with a holder that can be stopped, if it has holders.
    ///
    /// # Errors
    /// When its servers cannot be reached.
    pub(super) async fn stoppable(
        &self,
        environment: &Environment,
    ) -> anyhow::Result<Option<Box<dyn Stoppable>>> {
        Ok(match self.kind {
            Kind::Lease => Some(Box::new(Lease::connect(&environment.redis_url()?).await?)),
            Kind::Redlock => Some(Box::new(
                Redlock::connect(&environment.redlock_urls()).await?,
            )),
            Kind::Naive
            | Kind::Unsorted
            | Kind::Pessimistic
            | Kind::NoWait
            | Kind::Optimistic
            | Kind::Constraint
            | Kind::Queue => None,
        })
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
        assert_eq!(chosen(&["all"]).unwrap().len(), STRATEGIES.len());
        let error = chosen(&["queue", "nave"]).unwrap_err().to_string();
        assert!(
            error.contains("--strategies nave: known are all, naive"),
            "{error}"
        );
    }
}
