//! How feeds are sent.

use clap::ValueEnum;
use serde::Deserialize;
use soldonce_server::limits::{FEED_TICK_MS, FEED_TICK_MS_MAX, FEED_TICK_MS_MIN};
use soldonce_server::{FeedSettings, PageFeed};

use super::file::SettingsFile;
use super::source::{Sourced, line};
use super::word;
use crate::serve::ServeArgs;

/// How the page follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FeedWord {
    /// By a stream for each page.
    Stream,
    /// By a request each second.
    Poll,
}

/// Settings of feeds.
#[derive(Clone, Debug)]
pub(crate) struct FeedChoice {
    page: Sourced<FeedWord>,
    pub(super) tick_ms: Sourced<u64>,
}

impl FeedChoice {
    pub(super) fn gather(args: &ServeArgs, file: &SettingsFile) -> Self {
        Self {
            page: Sourced::first(args.feed, file.feed, FeedWord::Stream),
            tick_ms: Sourced::first(args.feed_tick_ms, file.feed_tick_ms, FEED_TICK_MS),
        }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let tick = self.tick_ms.value;
        anyhow::ensure!(
            (FEED_TICK_MS_MIN..=FEED_TICK_MS_MAX).contains(&tick),
            "feed_tick_ms: {tick} is outside {FEED_TICK_MS_MIN} to {FEED_TICK_MS_MAX} milliseconds"
        );
        Ok(())
    }

    /// A line for each.
    pub(super) fn describe(&self) -> String {
        let page = line("feed", word(&self.page.value), self.page.source);
        page + &line("feed_tick_ms", self.tick_ms.value, self.tick_ms.source)
    }

    /// As the server takes them.
    pub(crate) fn settings(&self) -> FeedSettings {
        FeedSettings {
            tick_ms: self.tick_ms.value,
            page: match self.page.value {
                FeedWord::Stream => PageFeed::Stream,
                FeedWord::Poll => PageFeed::Poll,
            },
        }
    }
}
