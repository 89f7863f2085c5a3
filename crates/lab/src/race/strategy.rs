//! A strategy, and how it is opened.

use std::sync::Arc;

use anyhow::{Context, bail};

use super::contender::{Contender, Product};
use super::environment::Environment;
use super::judge::Promise;
use super::strategies::STRATEGIES;
use super::textbook::{Guards, Textbook};

/// One strategy.
pub(super) struct Strategy {
    /// As on the command line.
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    /// How it works, in a line.
    pub(super) mechanism: &'static str,
    /// Why it holds or breaks, in a few sentences.
    pub(super) why: &'static str,
    pub(super) method: Method,
    /// What the tables refuse by themselves. The product has tables of its own.
    pub(super) guards: Guards,
}

/// How seats are sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
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
    /// Finds the strategies of these names; `all` is every one. Each once, in the order of the table.
    pub(super) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Self>> {
        if names.iter().any(|name| name == "all") {
            return Ok(STRATEGIES.iter().collect());
        }
        let is_known = |name: &&String| STRATEGIES.iter().any(|known| known.name == name.as_str());
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let known: Vec<_> = STRATEGIES.iter().map(|known| known.name).collect();
            let known = known.join(", ");
            bail!("--strategies {unknown}: known are all, {known}");
        }
        let is_named = |known: &&Self| names.iter().any(|name| name == known.name);
        Ok(STRATEGIES.iter().filter(is_named).collect())
    }

    /// Opens its connections.
    pub(super) async fn open(&self, environment: &Environment) -> anyhow::Result<Contender> {
        let opened = async {
            if self.method == Method::Queue {
                let product = Product::open(&environment.options()).await?;
                return anyhow::Ok(Contender::Product(product));
            }
            Ok(Contender::Textbook(Arc::new(
                self.textbook(environment).await?,
            )))
        };
        let opened = opened.await;
        opened.with_context(|| format!("strategy {} does not start", self.name))
    }

    /// Opens the connections of a textbook strategy.
    pub(super) async fn textbook(&self, environment: &Environment) -> anyhow::Result<Textbook> {
        let redis = match self.method {
            Method::Lease => vec![environment.redis_url()?.to_owned()],
            Method::Redlock => environment.redlock_urls(),
            Method::Naive
            | Method::Unsorted
            | Method::Pessimistic
            | Method::NoWait
            | Method::Optimistic
            | Method::Constraint
            | Method::Queue => Vec::new(),
        };
        Textbook::open(self.method, environment.pool_of(self.guards)?, &redis).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_chosen_once_and_in_the_order_of_the_table() {
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
