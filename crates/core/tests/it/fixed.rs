//! Random tests whose cases are the same in every run.

use proptest::test_runner::{Config, RngSeed};

/// At least so many cases; more when `PROPTEST_CASES` asks for them.
pub(crate) fn cases(least: u32) -> Config {
    let config = Config::default();
    Config {
        cases: config.cases.max(least),
        rng_seed: RngSeed::Fixed(0x50_1d_0c_e0),
        failure_persistence: None,
        ..config
    }
}
