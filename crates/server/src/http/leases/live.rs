//! How many leases each API key has, as far as this server granted or renewed them: for its limit and the metrics.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use soldonce_clock::{BootTime, Clock};
use soldonce_engine::keys::KeyId;
use soldonce_lease::Owner;

/// When each lease of each key ends by itself.
type Ends = HashMap<KeyId, HashMap<Owner, BootTime>>;

pub(in crate::http) struct LiveLeases {
    clock: Arc<dyn Clock>,
    most: usize,
    ends: Mutex<Ends>,
}

impl std::fmt::Debug for LiveLeases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveLeases")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl LiveLeases {
    pub(in crate::http) fn new(clock: Arc<dyn Clock>, most: Option<u32>) -> Self {
        let most = most.and_then(|most| usize::try_from(most).ok());
        Self {
            clock,
            most: most.unwrap_or(usize::MAX),
            ends: Mutex::default(),
        }
    }

    /// Counts a lease that is being asked for. Gives when it ended before, if it was counted then; fails with the
    /// time until the next one of the key ends, if it has as many as it may.
    pub(super) fn reserve(
        &self,
        key: KeyId,
        owner: Owner,
        life: Duration,
    ) -> Result<Option<BootTime>, Duration> {
        let now = self.clock.boot();
        let mut ends = crate::lock(&self.ends);
        let own = ends.entry(key).or_default();
        own.retain(|_, end| *end > now);
        if own.len() >= self.most && !own.contains_key(&owner) {
            let next = own.values().min().copied().unwrap_or(now);
            return Err(next.since(now));
        }
        Ok(own.insert(owner, now.plus(life)))
    }

    /// Notes that a lease ends then, or has ended.
    pub(super) fn note(&self, key: KeyId, owner: Owner, end: Option<BootTime>) {
        let mut ends = crate::lock(&self.ends);
        let own = ends.entry(key).or_default();
        match end {
            Some(end) => drop(own.insert(owner, end)),
            None => drop(own.remove(&owner)),
        }
        if own.is_empty() {
            ends.remove(&key);
        }
    }

    /// Notes that a lease lives for so long from now on.
    pub(super) fn lives(&self, key: KeyId, owner: Owner, life: Duration) {
        self.note(key, owner, Some(self.clock.boot().plus(life)));
    }

    fn count(&self) -> usize {
        let now = self.clock.boot();
        let mut ends = crate::lock(&self.ends);
        ends.retain(|_, own| {
            own.retain(|_, end| *end > now);
            !own.is_empty()
        });
        ends.values().map(HashMap::len).sum()
    }
}

impl Collector for LiveLeases {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let about = "Leases that this server granted or renewed and that are not over";
        let gauge = ConstGauge::new(i64::try_from(self.count()).unwrap_or(i64::MAX));
        let metric = to.encode_descriptor("soldonce_leases", about, None, MetricType::Gauge)?;
        gauge.encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use soldonce_clock::{ManualClock, SeededEntropy};

    use super::*;

    #[test]
    fn a_key_has_so_many_and_the_ended_do_not_count() {
        let clock = ManualClock::at(0);
        let live = LiveLeases::new(Arc::new(clock.clone()), Some(2));
        let from = SeededEntropy::new(1);
        let (a, b) = (KeyId::from_bytes([1; 16]), KeyId::from_bytes([2; 16]));
        let owners: Vec<Owner> = (0..3).map(|_| Owner::draw(&from)).collect();
        let seconds = Duration::from_secs;
        assert_eq!(live.reserve(a, owners[0], seconds(5)), Ok(None));
        assert_eq!(live.reserve(a, owners[1], seconds(9)), Ok(None));
        assert_eq!(live.reserve(a, owners[2], seconds(5)), Err(seconds(5)));
        assert!(live.reserve(a, owners[0], seconds(5)).unwrap().is_some());
        assert_eq!(live.reserve(b, owners[2], seconds(5)), Ok(None));
        assert_eq!(live.count(), 3);
        live.note(a, owners[1], None);
        assert_eq!(live.reserve(a, owners[2], seconds(7)), Ok(None));
        clock.advance(seconds(6));
        assert_eq!(live.count(), 1);
    }
}
