//! Reads what was given for a setting about limits. Every error names the setting, the value and the
//! fix.

use std::sync::Arc;

use anyhow::Context;
use soldonce_engine::rate::{Quota, RedisRates};
use soldonce_server::Network;

use super::Notes;
use crate::lease::span;
use crate::serve::shield::shared_redis;

/// A limit as it was given, if it was.
pub(super) struct GivenLimit<'a> {
    pub(super) name: &'static str,
    pub(super) text: Option<&'a str>,
    pub(super) notes: &'a mut Notes,
}

impl GivenLimit<'_> {
    /// Reads a quota, or returns the default. None is no limit.
    pub(super) fn quota(self, default: Option<Quota>) -> anyhow::Result<Option<Quota>> {
        self.read(default, "300/1m, 50/s", |text| read(text).ok(), written)
    }

    /// Reads a number of 1 or more, or returns the default. None is no limit.
    pub(super) fn number(self, default: u32) -> anyhow::Result<Option<u32>> {
        let read = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let right = format!("1 to {}", u32::MAX);
        self.read(Some(default), &right, read, |number| number.to_string())
    }

    /// Reads a number of 1 to 100, with or without a percent sign, or returns the default.
    pub(super) fn percent(self, default: u32) -> anyhow::Result<Option<u32>> {
        let read = |text: &str| {
            let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
            number.filter(|number| (1..=100).contains(number))
        };
        self.read(Some(default), "1 to 100", read, |number| {
            format!("{number}%")
        })
    }

    /// Reads how many the server may have at once: 1 to `most`, which is also meant by no limit.
    pub(super) fn count(self, default: usize, most: usize) -> anyhow::Result<usize> {
        let read = |text: &str| {
            let number = text.parse().ok();
            number.filter(|number| (1..=most).contains(number))
        };
        let right = format!("1 to {most}");
        let number = self.read(Some(default), &right, read, |number| number.to_string());
        Ok(number?.unwrap_or(most))
    }

    fn read<T: Copy>(
        self,
        default: Option<T>,
        right: &str,
        read: impl FnOnce(&str) -> Option<T>,
        show: impl FnOnce(T) -> String,
    ) -> anyhow::Result<Option<T>> {
        let name = self.name;
        let value = match self.text {
            None => default,
            Some("0" | "off") => None,
            Some(text) => Some(read(text).with_context(|| {
                format!("{name}: {text} is no limit; write {right}, or off for none")
            })?),
        };
        let shown = value.map_or_else(|| "off".to_owned(), show);
        self.notes.insert(name, shown);
        Ok(value)
    }
}

/// Creates the counters that servers share. The URL may hold a password, so no error repeats it.
pub(super) fn shared(url: &str) -> anyhow::Result<Arc<RedisRates>> {
    Ok(Arc::new(RedisRates::new(shared_redis("redis_url", url)?)))
}

/// Parses the addresses of the proxies that are trusted.
pub(super) fn networks(texts: &[String]) -> anyhow::Result<Vec<Network>> {
    let network = |text: &String| {
        let parsed = text.trim().parse::<Network>();
        parsed.with_context(|| format!("trusted_proxies: {text}"))
    };
    texts.iter().map(network).collect()
}

/// Parses a quota such as `300/1m` or `50/s`.
pub(super) fn read(text: &str) -> anyhow::Result<Quota> {
    let (requests, window) = text
        .split_once('/')
        .context("a `/` stands between number and time")?;
    let requests = requests.parse().ok();
    let requests = requests.context("a number stands before the `/`")?;
    let one = if window.starts_with(char::is_numeric) {
        ""
    } else {
        "1"
    };
    let window = span(&format!("{one}{window}")).ok();
    let window = window.filter(|window| window.subsec_nanos() == 0);
    let window = window.context("the time after the `/` is in whole s, m or h")?;
    Ok(Quota::new(requests, window.as_secs().try_into()?)?)
}

/// Formats a quota as it can be given.
pub(super) fn written(quota: Quota) -> String {
    let (requests, window) = (quota.requests(), quota.window_s());
    let units = [("h", 3_600), ("m", 60), ("s", 1)];
    let unit = units.into_iter().find(|(_, seconds)| window % seconds == 0);
    let (unit, seconds) = unit.unwrap_or(("s", 1));
    format!("{requests}/{}{unit}", window / seconds)
}
