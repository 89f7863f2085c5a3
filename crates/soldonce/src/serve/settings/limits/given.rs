//! Reads what was given for a setting about limits. Every error names the setting, the value and the
//! mend.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context;
use soldonce_clock::SystemClock;
use soldonce_engine::rate::{Quota, RedisRates};
use soldonce_lease::Namespace;
use soldonce_server::Network;
use soldonce_server::limits::{STREAMS_MAX, STREAMS_PER_ADDRESS_MAX};

use super::super::source::Sourced;
use crate::lease::span;

/// Keeps what servers count together apart from other data on their Redis.
const NAMESPACE: &str = "soldonce";

/// A setting as it was given, if it was.
pub(super) struct Given {
    pub(super) name: &'static str,
    pub(super) text: Sourced<Option<String>>,
}

impl Given {
    /// A quota; without one the default.
    pub(super) fn quota(self, default: Option<Quota>) -> anyhow::Result<Sourced<Option<Quota>>> {
        let name = self.name;
        self.text.try_map(|text| match text {
            None => Ok(default),
            Some(text) if is_off(&text) => Ok(None),
            Some(text) => read(&text).map(Some).with_context(|| {
                format!("{name}: {text} is no limit; write 300/1m, 50/s, or off for none")
            }),
        })
    }

    /// How many streams one address may have.
    pub(super) fn streams(self) -> anyhow::Result<Sourced<usize>> {
        let streams = self.number(STREAMS_PER_ADDRESS_MAX, STREAMS_MAX)?;
        streams.try_map(|streams| Ok(streams.unwrap_or(STREAMS_MAX)))
    }

    /// A number of 1 to `most`, with or without a percent sign; none where it is off.
    pub(super) fn number<N>(self, default: N, most: N) -> anyhow::Result<Sourced<Option<N>>>
    where
        N: Copy + FromStr + PartialOrd + Display + From<u8>,
    {
        let name = self.name;
        self.text.try_map(|text| match text {
            None => Ok(Some(default)),
            Some(text) if is_off(&text) => Ok(None),
            Some(text) => {
                let number = text.strip_suffix('%').unwrap_or(&text).parse().ok();
                let number = number.filter(|number| *number >= N::from(1) && *number <= most);
                number.map(Some).with_context(|| {
                    format!("{name}: {text} is no limit; write 1 to {most}, or off for none")
                })
            }
        })
    }

    /// Where servers count together. The address may hold a password, so no error repeats it.
    pub(super) fn shared(self) -> anyhow::Result<Sourced<Option<Arc<RedisRates>>>> {
        let name = self.name;
        self.text.try_map(|url| {
            let Some(url) = url else {
                return Ok(None);
            };
            let namespace = Namespace::new(NAMESPACE)?;
            let rates = RedisRates::at(&url, &namespace, Arc::new(SystemClock));
            let rates = rates.with_context(|| {
                format!("{name}: write redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT")
            })?;
            Ok(Some(Arc::new(rates)))
        })
    }
}

/// The proxies that are believed.
pub(super) fn networks(given: Sourced<Vec<String>>) -> anyhow::Result<Sourced<Vec<Network>>> {
    given.try_map(|texts| {
        let network = |text: String| {
            let parsed = text.trim().parse::<Network>();
            parsed.with_context(|| format!("trusted_proxies: {text}"))
        };
        texts.into_iter().map(network).collect()
    })
}

fn is_off(text: &str) -> bool {
    ["0", "off"].contains(&text)
}

/// `300/1m`, `50/s`.
pub(super) fn read(text: &str) -> anyhow::Result<Quota> {
    let (requests, window) = text
        .split_once('/')
        .context("a `/` stands between number and time")?;
    let requests = requests
        .parse()
        .ok()
        .context("a number stands before the `/`")?;
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

/// A quota as it can be given.
pub(super) fn written(quota: Quota) -> String {
    let (requests, window) = (quota.requests(), quota.window_s());
    let units = [("h", 3_600), ("m", 60), ("s", 1)];
    let unit = units.into_iter().find(|(_, seconds)| window % seconds == 0);
    let (unit, seconds) = unit.unwrap_or(("s", 1));
    format!("{requests}/{}{unit}", window / seconds)
}
