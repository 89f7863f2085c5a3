//! Parses what a server reports of itself.

use redis::Value;

/// The fields of `INFO`.
pub(super) struct ServerInfo<'a>(&'a str);

impl<'a> ServerInfo<'a> {
    pub(super) fn of(info: &'a str) -> Self {
        Self(info)
    }

    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(key, value)| (key == name).then(|| value.trim()))
    }

    /// Parses major, minor and patch of the Redis that it is, or that it is compatible with.
    pub(super) fn version(&self) -> Version {
        version(self.field("redis_version"))
    }

    /// Returns the version that it reports, for Valkey with that name; `unknown` without one.
    pub(super) fn product(&self) -> String {
        match self.field("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => self.field("redis_version").unwrap_or("unknown").to_owned(),
        }
    }

    /// Tells whether its version has the fix of CVE-2025-49844, a hole in its script engine.
    pub(super) fn has_script_fixes(&self) -> bool {
        // Valkey's `redis_version` is the one it is compatible with: 7.2.4 in every release.
        if let Some(valkey) = self.field("valkey_version") {
            return match version(Some(valkey)) {
                (7, 2, patch) => patch >= 11,
                (8, 0, patch) => patch >= 6,
                (8, 1, patch) => patch >= 4,
                other => other >= (9, 0, 0),
            };
        }
        match self.version() {
            (6, 2, patch) => patch >= 20,
            (7, 2, patch) => patch >= 11,
            (7, 4, patch) => patch >= 6,
            (8, 0, patch) => patch >= 4,
            other => other >= (8, 2, 2),
        }
    }
}

/// Major, minor and patch.
type Version = (u32, u32, u32);

fn version(text: Option<&str>) -> Version {
    let mut parts = text.unwrap_or_default().split('.');
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (next(), next(), next())
}

/// Reads the text of an answer; the parts of a list become lines. `None` for other kinds.
pub(super) fn text(value: Value) -> Option<String> {
    if let Value::Array(parts) = value {
        let parts: Option<Vec<String>> = parts.into_iter().map(text).collect();
        return Some(parts?.join("\n"));
    }
    redis::from_redis_value(value).ok()
}

/// Parses the answer to `TIME`, seconds then microseconds, to ms since 1970-01-01 UTC.
pub(super) fn time_ms(answer: &str) -> Option<i64> {
    let mut lines = answer.lines();
    let seconds: i64 = lines.next()?.parse().ok()?;
    let micros: i64 = lines.next()?.parse().ok()?;
    seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_versions_are_read() {
        let facts = ServerInfo::of("# Server\r\nredis_version:7.0.15\r\nrole:master\r\n");
        assert_eq!(facts.version(), (7, 0, 15));
        assert_eq!(facts.product(), "7.0.15");
        assert_eq!(facts.field("role"), Some("master"));
        assert_eq!(facts.field("rol"), None);
        assert_eq!(ServerInfo::of("").version(), (0, 0, 0));
    }

    #[test]
    fn a_server_is_judged_by_its_own_version() {
        let redis = |version: &str| format!("redis_version:{version}\r\n");
        let valkey = |version: &str| format!("redis_version:7.2.4\r\nvalkey_version:{version}\r\n");
        let is_safe = |info: String| ServerInfo::of(&info).has_script_fixes();
        for old in ["7.0.15", "7.2.10", "7.4.5", "8.0.3", "8.1.9", "8.2.1"] {
            assert!(!is_safe(redis(old)), "Redis {old}");
        }
        for new in ["6.2.20", "7.2.11", "7.4.6", "8.0.4", "8.2.2", "8.4.0"] {
            assert!(is_safe(redis(new)), "Redis {new}");
        }
        for old in ["7.2.10", "8.0.5", "8.1.3"] {
            assert!(!is_safe(valkey(old)), "Valkey {old}");
        }
        for new in ["7.2.11", "8.0.6", "8.1.4", "9.0.0"] {
            assert!(is_safe(valkey(new)), "Valkey {new}");
        }
        let shown = valkey("8.1.4");
        assert_eq!(ServerInfo::of(&shown).product(), "Valkey 8.1.4");
    }

    #[test]
    fn a_time_is_read_with_its_microseconds() {
        assert_eq!(time_ms("1770000000\n671999"), Some(1_770_000_000_671));
        assert_eq!(time_ms("1770000000\n104"), Some(1_770_000_000_000));
        assert_eq!(time_ms("1770000000"), None);
    }
}
