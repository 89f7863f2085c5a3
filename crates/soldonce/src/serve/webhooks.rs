//! Where webhooks may go.

use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use serde::Deserialize;
use soldonce_engine::Engine;
use soldonce_engine::webhook::address::Destinations;
use soldonce_engine::webhook::{Sender, SystemLookup};

/// Where webhook endpoints may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WebhookWord {
    /// Out in the internet, by https.
    Public,
    /// For development: also on this machine and in its network, and by http.
    Any,
}

impl WebhookWord {
    /// The engine with what delivers to there.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn post(self, engine: Engine) -> anyhow::Result<Engine> {
        let destinations = match self {
            Self::Public => Destinations::Public,
            Self::Any => Destinations::Any,
        };
        let sender = Sender::new(destinations, Arc::new(SystemLookup));
        let sender = sender.map_err(anyhow::Error::msg);
        Ok(engine.posted_by(sender.context("webhooks cannot be sent")?))
    }
}
