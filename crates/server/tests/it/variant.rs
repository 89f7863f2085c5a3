//! Runs the tests of a file over HTTP and over gRPC, on a folder and on PostgreSQL. A test learns its variant when it
//! runs, so that its file is compiled once.

use std::pin::Pin;

use tokio::runtime::Builder;

/// What requests are sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    Grpc,
}

/// Where what was sold is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Folder,
    Postgres,
}

/// What a test runs over, and on.
pub(crate) type Variant = (Transport, Store);

const USUAL: Variant = (Transport::Http, Store::Folder);

tokio::task_local! {
    /// The variant of a test, in the test's own task and in no task that it spawns.
    static VARIANT: Variant;
}

/// Gives the variant of the test that runs, and the usual one where a test has none.
pub(crate) fn current() -> Variant {
    VARIANT.try_with(|variant| *variant).unwrap_or(USUAL)
}

/// Runs a test in the variant of this name, on its own thread alone or with so many workers.
pub(crate) fn run(variant: &str, workers: usize, test: Pin<Box<dyn Future<Output = ()>>>) {
    let variant = match variant {
        "over_http" => USUAL,
        "over_grpc" => (Transport::Grpc, Store::Folder),
        "on_postgres" => (Transport::Http, Store::Postgres),
        "over_grpc_on_postgres" => (Transport::Grpc, Store::Postgres),
        other => panic!("there is no variant {other}"),
    };
    let mut runtime = if workers == 0 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    if workers > 0 {
        runtime.worker_threads(workers);
    }
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(VARIANT.scope(variant, test));
}

/// Makes tests of a file's functions: each of them once in each of these variants, as `events::over_grpc::..`.
macro_rules! run_over {
    ([$($variant:ident),+], workers: $workers:literal, $tests:tt) => {
        $(crate::variant::run_over! { @ $variant, $workers, $tests })+
    };
    (@ $variant:ident, $workers:literal, { $($test:ident),+ $(,)? }) => {
        mod $variant {
            $(
                #[test]
                fn $test() {
                    let test = Box::pin(super::$test());
                    crate::variant::run(stringify!($variant), $workers, test);
                }
            )+
        }
    };
}

pub(crate) use run_over;
