//! The suite of all backends, on a server and on a cluster.

use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Backend, Fut};
use soldonce_lease::{Clock, SystemClock};

use soldonce_testkit::redis::Redis;

use crate::conformance::Bench;

use super::site::{Numbers, connect, settings};

/// Real time: short, and long against a few calls on a busy machine.
const TTL: Duration = Duration::from_millis(1_200);
/// A machine that stalls must not look like a server that does not answer.
const PATIENT: Duration = Duration::from_secs(5);

const SLACK: Duration = Duration::from_millis(240);

/// A backend, and what must outlive it.
struct Real<S> {
    backend: RedisBackend,
    _server: S,
}

impl<S: Send + Sync> Bench for Real<S> {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        SystemClock.sleep_until(SystemClock.boot().plus(span))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn slack(&self) -> Duration {
        SLACK
    }

    fn cases(&self) -> u32 {
        4
    }

    fn wakes(&self) -> bool {
        true
    }
}

async fn server() -> Real<Redis> {
    let server = Redis::start().unwrap();
    let mut settings = settings();
    settings.epochs = Some(Numbers::from(1));
    settings.call_timeout = PATIENT;
    Real {
        backend: connect(&server, settings).await,
        _server: server,
    }
}

mod server {
    use crate::conformance::conforms;

    conforms!(super::server());
}

#[cfg(feature = "cluster")]
mod cluster {
    use soldonce_lease::Namespace;
    use soldonce_lease::backend::redis::{RedisBackend, RedisConfig, RedisSettings};
    use soldonce_testkit::redis::{FullCoverage, RedisCluster};

    use super::super::site::Numbers;
    use super::{PATIENT, Real};
    use crate::conformance as suite;

    /// A backend in a namespace of its own, so that each law begins with nothing on one cluster.
    async fn fresh(cluster: &RedisCluster, namespace: &str) -> RedisBackend {
        let seeds: Vec<RedisConfig> = cluster.urls().into_iter().map(RedisConfig::from).collect();
        let mut settings = RedisSettings::new(Namespace::new(namespace).unwrap());
        settings.epochs = Some(Numbers::from(1));
        settings.call_timeout = PATIENT;
        RedisBackend::connect_cluster(&seeds, settings)
            .await
            .unwrap()
    }

    macro_rules! laws_hold {
        ($($law:ident)+) => {
            #[tokio::test]
            async fn every_law_holds_on_a_cluster() {
                let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
                $(
                    let namespace = stringify!($law).replace('_', "-");
                    let backend = fresh(&cluster, &namespace[..namespace.len().min(32)]).await;
                    suite::$law(&Real { backend, _server: () }).await;
                )+
            }
        };
    }

    laws_hold! {
        b1_one_owner_at_a_time
        b1_of_many_at_once_one_wins
        b2_all_names_or_none
        b3_asking_again_gives_the_same_grant
        b4_renew_never_creates
        b4_renew_needs_owner_and_token
        b4_renew_stops_at_the_cap
        b4_renew_for_no_time_changes_nothing
        b5_release_needs_owner_and_token
        b5_release_by_owner_alone
        b6_tokens_rise
        b6_tokens_rise_above_the_floor
        b8_a_grant_lives_as_long_as_answered
        b9_every_conflict_is_listed
        b10_what_is_kept_ends
        a_name_alone_is_not_the_name_of_a_group
        inspect_tells_who_holds
        a_batch_is_answered_in_order
        a_release_wakes
        a_fair_queue_keeps_the_order
        a_dead_waiter_costs_three_seconds
        nobody_overtakes_a_live_waiter
        agrees_with_the_oracle
    }
}
