//! What a reader of figures must know about the machine.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) system: String,
    /// Processes that wanted a core, in the minute before the report.
    pub(crate) load_average: String,
}

impl Machine {
    /// Reads it from `/proc` and `/etc/os-release`.
    pub(crate) fn here() -> Self {
        let processors = read("/proc/cpuinfo");
        let processor = value(&processors, "model name", ':');
        let system = read("/etc/os-release");
        let kernel = read("/proc/sys/kernel/osrelease");
        let system = value(&system, "PRETTY_NAME", '=').unwrap_or("unknown system");
        Self {
            processor: processor.unwrap_or("unknown processor").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            system: format!("{system}, kernel {}", kernel.trim()),
            load_average: load_average(),
        }
    }
}

/// Returns the kernel's load average of the last minute; empty where it gives none.
pub(crate) fn load_average() -> String {
    let text = read("/proc/loadavg");
    let first = text.split_ascii_whitespace().next();
    first.unwrap_or_default().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Finds the first value of this name in lines of `name <sign> value`.
fn value<'a>(text: &'a str, name: &str, sign: char) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(sign));
    pairs
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_name() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian 12\"\n";
        assert_eq!(value(text, "PRETTY_NAME", '='), Some("Debian 12"));
        assert_eq!(
            value("model\t: 7\nmodel name\t: Fast", "model name", ':'),
            Some("Fast")
        );
        assert_eq!(value(text, "model name", ':'), None);
    }
}
