//! Bugs in the Redis backends, so that tests can be seen to catch them. Feature `test-kit`, and only
//! in debug builds.

use super::script::{self, Scripts};

/// A bug in a backend on Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlantedInRedis {
    /// A connection to a cluster is never replaced, however long a shard is silent (against
    /// `lease.md` 8).
    NoWatchdog,
    /// A script has another text.
    Script(ScriptBug),
}

/// A script with one of its lines replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptBug {
    file: &'static str,
    text: String,
}

impl ScriptBug {
    /// The script of `file`, `renew.lua` for instance, with `instead` in the place of its line
    /// `line`. Indentation does not matter.
    ///
    /// # Errors
    /// If there is no such script, or the line is not in it exactly once.
    pub fn new(file: &'static str, line: &str, instead: &str) -> Result<Self, String> {
        let shipped = script::ALL.iter().find(|(name, _)| *name == file);
        let Some((_, shipped)) = shipped else {
            return Err(format!("there is no script {file}"));
        };
        let is_it = |candidate: &&str| candidate.trim() == line.trim();
        match shipped.lines().filter(is_it).count() {
            1 => {}
            found => return Err(format!("{found} times in {file}: {line}")),
        }
        let lines = shipped.lines();
        let lines = lines.map(|each| if is_it(&each) { instead } else { each });
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(Self { file, text })
    }

    /// Which script it is in.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// The script as it will be sent.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The scripts of a backend with this bug.
pub(super) fn scripts(bug: Option<&PlantedInRedis>) -> &'static Scripts {
    match bug {
        Some(PlantedInRedis::Script(bug)) => Scripts::with(bug.file, bug.text.clone()),
        Some(PlantedInRedis::NoWatchdog) | None => Scripts::shipped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_must_stand_there_exactly_once() {
        let clock = "local time = redis.call('TIME')";
        let bug = ScriptBug::new("renew.lua", clock, "local time = {0, 0}").expect("one line");
        assert!(bug.text().contains("{0, 0}") && !bug.text().contains("'TIME'"));
        assert!(ScriptBug::new("renew.lua", "end", "").is_err());
        assert!(ScriptBug::new("renew.lua", "local tim", "").is_err());
        assert!(ScriptBug::new("other.lua", clock, "").is_err());
    }
}
