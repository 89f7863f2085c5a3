//! CPU time and memory of processes.

use std::time::Duration;

use anyhow::Context;

/// CPU time that a process has used so far, user and system, all its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime(Duration);

impl CpuTime {
    /// Reads that of the process `id`, to the tick of the kernel (10 ms).
    pub(crate) fn of(id: u32) -> anyhow::Result<Self> {
        Self::read(&id.to_string())
    }

    pub(crate) fn own() -> anyhow::Result<Self> {
        Self::read("self")
    }

    pub(crate) fn since(self, earlier: CpuTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    fn read(process: &str) -> anyhow::Result<Self> {
        let path = format!("/proc/{process}/stat");
        let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let ticks = ticks_of(&stat).with_context(|| format!("cannot understand {path}"))?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Ok(Self(Duration::from_nanos(
            ticks.saturating_mul(1_000_000_000 / per_second),
        )))
    }
}

/// Adds user and system time of `/proc/<pid>/stat`, proc(5): fields 14 and 15. The name before
/// them, in brackets, may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(user + system)
}

/// Reads the resident memory of a process, bytes.
pub(crate) fn resident_bytes(id: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{id}/statm");
    let statm = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let pages = statm.split_ascii_whitespace().nth(1);
    let pages = pages.and_then(|pages| pages.parse::<u64>().ok());
    let page = u64::try_from(rustix::param::page_size())?;
    Ok(pages.with_context(|| format!("cannot understand {path}"))? * page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4 5 0 0 0 30 12 0 0 20 0 3 0 99 1 2";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("7 (a) S 1"), None);
    }

    #[test]
    fn own_time_is_readable() {
        assert!(CpuTime::own().is_ok());
    }
}
