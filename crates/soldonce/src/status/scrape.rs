//! The metrics of a server, read from their text.

use std::collections::BTreeMap;

/// The samples of `/metrics` at one moment, of one server or of several together.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrape(Vec<Sample>);

#[derive(Clone, Debug)]
struct Sample {
    name: String,
    labels: String,
    value: f64,
}

impl Sample {
    /// Returns name and labels, which identify the time series.
    fn series(&self) -> (&str, &str) {
        (&self.name, &self.labels)
    }
}

impl Scrape {
    /// Parses the text format of Prometheus; a line of another form is skipped.
    pub(super) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(sample).collect())
    }

    /// Adds the samples of another server.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns how much each counter rose since an earlier scrape of the same server. One that fell
    /// was reset: its server restarted.
    pub(super) fn since(&self, before: &Self) -> Self {
        let before = before.0.iter().map(|was| (was.series(), was.value));
        let before: BTreeMap<_, f64> = before.collect();
        let risen = self.0.iter().map(|now| {
            let before = before.get(&now.series()).copied().unwrap_or_default();
            let value = if now.value < before {
                now.value
            } else {
                now.value - before
            };
            Sample {
                value,
                ..now.clone()
            }
        });
        Self(risen.collect())
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// Sums all samples of this name that have one of these labels, such as `outcome="ok"`; all of
    /// them if no label is given.
    pub(super) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let of_labels = |sample: &&Sample| {
            labels.is_empty() || labels.iter().any(|label| sample.labels.contains(label))
        };
        self.of(name)
            .filter(of_labels)
            .map(|sample| sample.value)
            // The sum of nothing would be minus zero.
            .fold(0.0, |sum, value| sum + value)
    }

    /// Returns the largest sample of this name: for what every server says about the same ledger.
    pub(super) fn max(&self, name: &str) -> f64 {
        self.of(name).map(|sample| sample.value).fold(0.0, f64::max)
    }

    /// Returns the cumulative counts of a histogram by their upper bound in microseconds.
    pub(super) fn buckets(&self, name: &str) -> BTreeMap<u64, f64> {
        let mut buckets = BTreeMap::new();
        for sample in self.of(&format!("{name}_bucket")) {
            let bound = sample.labels.split("le=\"").nth(1);
            let bound = bound.and_then(|rest| rest.split('"').next());
            if let Some(bound) = bound.and_then(micros) {
                *buckets.entry(bound).or_default() += sample.value;
            }
        }
        buckets
    }
}

/// Converts a bound from seconds to microseconds. `+Inf` is the largest number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are of microseconds to minutes, and infinity is the largest number"
)]
fn micros(bound: &str) -> Option<u64> {
    let seconds: f64 = bound.parse().ok()?;
    Some((seconds * 1e6).round() as u64)
}

fn sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    Some(Sample {
        name: name.to_owned(),
        labels: labels.to_owned(),
        value: value.parse().ok()?,
    })
}
