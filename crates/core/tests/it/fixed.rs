//! Random tests whose cases are the same in every run.

use proptest::test_runner::{Config, RngSeed};

/// What `PROPTEST_CASES` is when it is not set.
const USUAL: u32 = 256;

/// So many cases; `PROPTEST_CASES=2560` makes them ten times as many.
pub(crate) fn cases(usually: u32) -> Config {
    let config = Config::default();
    Config {
        cases: (config.cases / USUAL).max(1).saturating_mul(usually),
        rng_seed: RngSeed::Fixed(0x50_1d_0c_e0),
        failure_persistence: None,
        ..config
    }
}
