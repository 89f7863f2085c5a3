//! What races: a strategy with its connections, and one hall that it sells.

mod pool;
mod product;

use std::sync::Arc;

use soldonce_core::{History, OnHold};

use super::plan::{Hall, Want};
use super::textbook::Textbook;

pub(super) use self::pool::Pool;
pub(super) use self::product::{Product, new_event};

use self::product::ProductSale;

/// The answer to one buyer.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The buyer has the seats. The product gives a hold, which is confirmed afterwards; textbook
    /// strategies sell at once.
    Won(Option<OnHold>),
    /// Another buyer has a seat, or gets it: an ordinary answer.
    Refused(&'static str),
    /// Anything else.
    Failed(String),
}

/// A strategy that is ready to sell halls.
pub(super) enum Contender {
    Textbook(Arc<Textbook>),
    Product(Product),
}

/// One hall on sale.
#[derive(Clone)]
pub(super) enum Sale {
    Textbook(Arc<Textbook>, Arc<Hall>),
    Product(Arc<ProductSale>),
}

impl Contender {
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

    /// What it sends for one buyer of three seats, in order.
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
