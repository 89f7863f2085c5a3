//! The test payments of a demo: the page pays with test cards through them, where the page of a shop has
//! the script of its provider. `soldonce serve` has none, and then its routes are not there at all.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;

/// The answer to a test payment; dropped, the bank may have been asked all the same.
pub type TestPaymentFuture<'a, T = ()> = BoxFuture<'a, Result<T, TestPaymentRefusal>>;

/// Takes the place of a provider's own script: charges test cards, and asks the buyer's bank. What came
/// of it is told by the provider, as ever, and never here.
pub trait TestPayments: Debug + Send + Sync + 'static {
    /// Lists the cards a buyer may choose from.
    fn cards(&self) -> &[ShownCard];

    /// Charges a card.
    ///
    /// # Errors
    /// [`TestPaymentRefusal`]; that the card declines is none.
    fn charge<'a>(&'a self, of: TestIntent<'a>, card: &'a str)
    -> TestPaymentFuture<'a, CardAnswer>;

    /// Passes on the bank's answer: the buyer authenticated or did not, or its silence has ended.
    ///
    /// # Errors
    /// [`TestPaymentRefusal`] when the bank was not asked.
    fn answer<'a>(&'a self, of: TestIntent<'a>, answer: BankAnswer) -> TestPaymentFuture<'a>;
}

/// A test card of a demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DemoCard)]
pub struct ShownCard {
    /// What it is asked for by.
    pub card: &'static str,
    /// For people.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// The payment that is meant, and the proof that it is the buyer's.
#[derive(Clone, Copy)]
pub struct TestIntent<'a> {
    /// The provider's name for it.
    pub intent: &'a str,
    /// What checkout has given the buyer.
    pub client_secret: &'a str,
}

/// The immediate result of charging a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardAnswer {
    /// It was accepted, or is not decided yet.
    Taken,
    /// It was declined: another one may pay.
    Declined,
}

/// The answer of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankAnswer {
    /// The charge may be made.
    Yes,
    /// It may not.
    No,
}

/// Why a test payment did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestPaymentRefusal {
    /// There is no such payment, or the secret is not its own.
    Unknown,
    /// There is no such card.
    Card,
    /// The payment is not waiting for that any more.
    State,
}
