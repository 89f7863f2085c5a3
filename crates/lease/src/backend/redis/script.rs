//! The scripts: one file each, with its contract as its first comment.

use std::borrow::Cow;
use std::sync::LazyLock;

/// A script and the hash under which servers know it.
pub(super) struct Script {
    text: Cow<'static, str>,
    hash: String,
}

impl Script {
    pub(super) fn of(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }
}

macro_rules! scripts {
    ($($(#[$when:meta])* $name:ident = $file:literal;)*) => {
        pub(super) struct Scripts {
            $($(#[$when])* pub(super) $name: Script,)*
        }

        impl Scripts {
            fn new() -> Self {
                Self { $($(#[$when])* $name: Script::of(include_str!(concat!("scripts/", $file))),)* }
            }

            #[cfg(all(feature = "test-kit", debug_assertions))]
            fn of_file(&mut self, file: &str) -> Option<&mut Script> {
                match file {
                    $($(#[$when])* $file => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        const ALL: &[(&str, &str)] =
            &[$($(#[$when])* ($file, include_str!(concat!("scripts/", $file))),)*];
    };
}

scripts! {
    grant = "grant.lua";
    acquire = "acquire.lua";
    renew = "renew.lua";
    release = "release.lua";
    install = "install.lua";
    inspect = "inspect.lua";
    #[cfg(feature = "redlock")]
    rl_acquire = "rl_acquire.lua";
}

static SHIPPED: LazyLock<Scripts> = LazyLock::new(Scripts::new);

impl Scripts {
    pub(super) fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Builds the scripts with another text for this file, which is never freed, like the others.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub(super) fn with(file: &str, text: String) -> &'static Self {
        let mut scripts = Self::new();
        if let Some(script) = scripts.of_file(file) {
            *script = Script::of(text);
        }
        Box::leak(Box::new(scripts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the broken rules of lease.md 6.2, which a reader would otherwise have to trust.
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
            let head = text.lines().next().unwrap_or_default();
            let may = head.contains("allow-oom");
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
