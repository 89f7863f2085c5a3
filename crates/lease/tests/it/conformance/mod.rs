//! One suite for all backends: the laws of `lease.md` 5.1 and the rows of 1.3.
//!
//! A backend plugs in with a [`Bench`] and one line, which makes a test of each law:
//!
//! ```ignore
//! conforms!(MyBench::start());    // a future of something that is a Bench, empty at each call
//! ```

mod laws;
mod liar;
mod memory;
#[cfg(feature = "redis")]
mod pass;
mod permits;
mod planted;
mod random;
mod times;
mod together;
mod unknown;
mod waiting;

use std::time::Duration;

use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Fut, Names, ReleaseReply, RenewReply,
};
use soldonce_lease::{FencingToken, Name, Owner, Refusal, SeededEntropy};

use crate::requests;

pub(crate) use laws::*;
#[cfg(feature = "redis")]
pub(crate) use pass::pass_on_redis;
pub(crate) use permits::*;
pub(crate) use random::agrees_with_the_oracle;
pub(crate) use times::*;
pub(crate) use together::*;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use unknown::*;
pub(crate) use waiting::*;

/// A backend under test and its time.
pub(crate) trait Bench: Send + Sync {
    /// The backend, with nothing in it at the start.
    fn backend(&self) -> &dyn Backend;

    /// Lets `span` pass on the backend's clock. Real servers make the test wait.
    fn advance(&self, span: Duration) -> Fut<'_, ()>;

    /// A ttl that is short for this backend and long against [`Bench::slack`].
    fn ttl(&self) -> Duration;

    /// How far the test's idea of the backend's time may be off: the round trips of a few calls, and a stall of some
    /// seconds. At most a quarter of the ttl.
    fn slack(&self) -> Duration;

    /// How many random sequences to run.
    fn cases(&self) -> u32 {
        12
    }

    /// Whether a release wakes those who listen.
    fn wakes(&self) -> bool;
}

/// Gives the names of all laws to a macro, behind what is written after its name.
macro_rules! every_law {
    ($then:ident $($before:tt)*) => {
        $then! { $($before)*
            b1_one_owner_at_a_time
            b1_of_many_at_once_one_wins
            b2_all_names_or_none
            b3_asking_again_gives_the_same_grant
            b3_asking_for_less_shortens_nothing
            b4_renew_never_creates
            b4_renew_needs_owner_and_token
            b4_renew_stops_at_the_cap
            b4_renew_lengthens_all_names_or_none
            b4_renew_for_no_time_changes_nothing
            b5_release_needs_owner_and_token
            b5_release_by_owner_alone
            b6_tokens_rise
            b6_a_refusal_draws_no_token
            b6_tokens_rise_above_the_floor
            b6_a_floor_of_a_later_epoch_lifts_the_token
            b8_a_grant_lives_as_long_as_answered
            b9_every_conflict_is_listed
            b10_what_is_kept_ends
            a_name_alone_is_not_the_name_of_a_group
            odd_names_come_back_and_are_kept_apart
            inspect_tells_who_holds
            a_batch_is_answered_in_order
            of_many_at_once_each_has_its_own_answer
            of_several_others_the_highest_is_told
            a_release_wakes
            a_fair_queue_keeps_the_order
            a_dead_waiter_costs_three_seconds
            nobody_overtakes_a_live_waiter
            of_many_at_once_as_many_win_as_there_are_permits
            a_permit_given_back_is_the_next_ones_with_a_higher_token
            asking_again_gives_the_same_permit
            permits_of_the_dead_come_free
            readers_and_a_writer_exclude_each_other
        }
    };
}
pub(crate) use every_law;

/// Makes a test of each law for the benches that the expression makes, a future each.
macro_rules! conforms {
    ($bench:expr) => {
        crate::conformance::every_law! { conforms $bench => }

        #[tokio::test]
        async fn agrees_with_the_oracle() {
            let bench = $bench.await;
            crate::conformance::agrees_with_the_oracle(&bench).await;
        }
    };
    ($bench:expr => $($law:ident)+) => {
        $(
            #[tokio::test]
            pub(crate) async fn $law() {
                let bench = $bench.await;
                crate::conformance::$law(&bench).await;
            }
        )+
    };
}
pub(crate) use conforms;

/// The owner number `n` of a test.
pub(crate) fn owner(n: u64) -> Owner {
    Owner::draw(&SeededEntropy::new(n))
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn one(text: &str) -> Names {
    Names::one(name(text))
}

pub(crate) fn group(names: &[&str]) -> Names {
    Names::of_group(name("hall"), names.iter().map(|text| name(text)).collect())
}

/// A plain request of `owner` for the bench's ttl.
pub(crate) fn ask(bench: &dyn Bench, names: &Names, n: u64) -> Acquire {
    Acquire {
        cap: Some(bench.ttl() * 100),
        ..requests::ask(names.clone(), owner(n), bench.ttl())
    }
}

/// A grant as a test sees it.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) token: FencingToken,
    pub(crate) granted: Duration,
    pub(crate) again: bool,
}

/// Asks, and must be granted.
#[track_caller]
pub(crate) fn granted(reply: AcquireReply) -> Got {
    match reply {
        AcquireReply::Granted {
            token,
            granted,
            again,
            ..
        } => Got {
            token,
            granted,
            again,
        },
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(reply: AcquireReply) -> Refusal {
    match reply {
        AcquireReply::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) async fn acquire(bench: &dyn Bench, names: &Names, n: u64) -> AcquireReply {
    bench.backend().acquire(&ask(bench, names, n)).await
}

pub(crate) async fn renew(
    bench: &dyn Bench,
    names: &Names,
    (n, token): (u64, FencingToken),
    ttl: Duration,
) -> RenewReply {
    let ask = requests::ask(names.clone(), owner(n), ttl);
    requests::renew(bench.backend(), &ask, token).await
}

pub(crate) async fn release(
    bench: &dyn Bench,
    names: &Names,
    n: u64,
    token: Option<FencingToken>,
) -> ReleaseReply {
    requests::release(bench.backend(), &ask(bench, names, n), token).await
}
