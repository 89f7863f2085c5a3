//! What races: a strategy with its connections, and one hall that it sells.

mod product;

use std::sync::Arc;

use anyhow::Context;
use soldonce_core::{History, OnHold};

use super::environment::Environment;
use super::outcome::Outcome;
use super::plan::{Hall, Want};
use super::strategies::Strategy;
use super::textbook::{Method, Textbook};

pub(super) use self::product::{Product, new_event};

use self::product::ProductSale;

/// A strategy that is ready to sell halls.
pub(super) enum Contender {
    Textbook(Arc<Textbook>),
    Product(Product),
}

#[derive(Clone)]
pub(super) enum Sale {
    Textbook(Arc<Textbook>, Arc<Hall>),
    Product(Arc<ProductSale>),
}

impl Contender {
    pub(super) async fn open(
        strategy: &Strategy,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let opened = if strategy.method == Method::Queue {
            let product = Product::open(&environment.options()).await;
            product.map(Self::Product)
        } else {
            let textbook = textbook(strategy, environment).await;
            textbook.map(|textbook| Self::Textbook(Arc::new(textbook)))
        };
        opened.with_context(|| format!("strategy {} does not start", strategy.name))
    }

    /// Makes a hall with all seats free.
    pub(super) async fn open_hall(&self, hall: &Hall) -> anyhow::Result<Sale> {
        Ok(match self {
            Self::Textbook(textbook) => {
                textbook.fill(hall).await?;
                Sale::Textbook(Arc::clone(textbook), Arc::new(hall.clone()))
            }
            Self::Product(product) => Sale::Product(Arc::new(product.open_hall(hall).await?)),
        })
    }

    /// Returns the statements that it sends for one buyer of three seats, in order.
    pub(super) fn statements(&self) -> &'static [&'static str] {
        match self {
            Self::Textbook(textbook) => textbook.statements(),
            Self::Product(_) => Product::STATEMENTS,
        }
    }

    /// Ends its tasks and connections.
    pub(super) async fn close(&self) {
        match self {
            Self::Textbook(textbook) => textbook.close(),
            Self::Product(product) => product.close().await,
        }
    }
}

impl Sale {
    /// Sells or holds seats for one buyer. This is what is timed.
    pub(super) async fn buy(&self, want: &Want) -> Outcome {
        match self {
            Self::Textbook(textbook, hall) => textbook.buy(hall, want).await,
            Self::Product(sale) => sale.hold(want).await,
        }
    }

    /// Confirms a hold. Not timed.
    pub(super) async fn confirm(&self, won: OnHold) -> Result<(), String> {
        match self {
            Self::Textbook(..) => Ok(()),
            Self::Product(sale) => sale.confirm(won).await,
        }
    }

    /// Reads the history of the hall, for the auditor.
    pub(super) async fn history(&self) -> anyhow::Result<History> {
        match self {
            Self::Textbook(textbook, hall) => textbook.history(hall).await,
            Self::Product(sale) => sale.history().await,
        }
    }
}

pub(super) async fn textbook(
    strategy: &Strategy,
    environment: &Environment,
) -> anyhow::Result<Textbook> {
    let redis = if strategy.method == Method::Lease {
        vec![environment.redis_url()?.to_owned()]
    } else if strategy.method == Method::Redlock {
        environment.redlock_urls()
    } else {
        Vec::new()
    };
    let pool = environment.pool_of(strategy.guards)?;
    Textbook::open(strategy.method, pool, &redis).await
}
