//! The parts that `bench`, `race` and `storm` share: starting servers, counting answers, comparing
//! figures with goals, printing reports.

mod closed;
mod count;
mod goal;
mod machine;
mod process;
mod served;
mod services;
mod stats;
mod text;

pub(crate) use self::closed::{Closed, Load, closed};
pub(crate) use self::count::{LoadError, LoadReport, Tally};
pub(crate) use self::goal::{Bound, Verdict};
pub(crate) use self::machine::{Machine, load_average};
pub(crate) use self::process::{CpuTime, resident_bytes};
pub(crate) use self::served::{
    ANY_PORT, Served, admin_key, product, serves_line, stop_signal, unless_stopped,
};
pub(crate) use self::services::{
    Service, private_postgres, private_redis, random_name, redis_version,
};
pub(crate) use self::stats::{
    Latencies, LatencyUs, Series, add_counts, median, median_ratio, per_second, thousandths,
};
pub(crate) use self::text::{
    closing_lines, kinds, list, millis, number, print_report, progress_bar, table,
};
