//! The scripts: one file each, with its contract as its first comment.

use std::sync::LazyLock;

/// A script and the hash under which servers know it.
pub(super) struct Script {
    text: &'static str,
    hash: String,
}

impl Script {
    pub(super) fn of(text: &'static str) -> Self {
        let hash = redis::Script::new(text).get_hash().to_owned();
        Self { text, hash }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }
}

macro_rules! scripts {
    ($($(#[$when:meta])* $name:ident = $file:literal;)*) => {
        $($(#[$when])* pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::of(include_str!(concat!("scripts/", $file))));)*

        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$(($file, include_str!(concat!("scripts/", $file)))),*];
    };
}

scripts! {
    ACQUIRE = "acquire.lua";
    RENEW = "renew.lua";
    RELEASE = "release.lua";
    INSTALL = "install.lua";
    INSPECT = "inspect.lua";
    #[cfg(feature = "redlock")]
    RL_ACQUIRE = "rl_acquire.lua";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of lease.md 6.2 that a reader would otherwise have to trust.
    fn broken_rules(text: &str) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if !text.starts_with("#!lua") {
            broken.push("opens with #!lua, or it may touch other slots");
        }
        if text.matches("redis.call('TIME')").count() > 1 {
            broken.push("reads the clock once");
        }
        if text.contains("tostring(") {
            broken.push("never tostring, which loses digits");
        }
        if text.contains("'sl:") || text.contains("\"sl:") {
            broken.push("builds no key");
        }
        if !text.contains(" KEYS: ") || !text.contains(" Answers") {
            broken.push("tells its contract");
        }
        broken
    }

    #[test]
    fn every_script_keeps_the_rules() {
        for (file, text) in ALL {
            assert_eq!(broken_rules(text), Vec::<&str>::new(), "{file}");
        }
    }

    #[test]
    fn leases_can_end_at_maxmemory_and_acquire_cannot_begin() {
        for (file, text) in ALL {
            let may = text
                .lines()
                .next()
                .unwrap_or_default()
                .contains("allow-oom");
            let must = ["renew.lua", "release.lua"].contains(file);
            assert_eq!(may, must, "{file}");
        }
    }

    #[test]
    fn a_script_that_breaks_every_rule_is_caught() {
        let bad = "local a, b = redis.call('TIME'), redis.call('TIME')\n\
                   redis.call('SET', 'sl:x', tostring(a))";
        assert_eq!(broken_rules(bad).len(), 5);
    }
}
