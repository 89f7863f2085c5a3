//! Faults of calls and of notices: one by one as a test scripts them, or drawn at random from a
//! seed.

use std::time::Duration;

use soldonce_clock::{Entropy, SeededEntropy};

use super::route::Route;

/// A fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// It takes effect, then the answer is a 500, which its key remembers.
    ErrorAfter,
    /// It has no effect and the answer is a 500, which its key remembers.
    ErrorBefore,
    /// It takes effect, then the connection closes without an answer.
    CloseAfter,
    /// The connection closes before it has any effect.
    CloseBefore,
    /// It waits before its effect until [`FakeStripe::release`](super::FakeStripe::release), with
    /// its key in use; also when the caller closed the connection meanwhile.
    HoldCall,
    /// It takes effect, then its answer waits until
    /// [`FakeStripe::release`](super::FakeStripe::release).
    HoldReply,
    /// It takes effect, and its answer is delayed by this time, on the account's clock.
    Slow(Duration),
    /// It has no effect and the answer is a 429.
    RateLimited,
    /// As [`CallFault::RateLimited`], with this `Retry-After`, in whole seconds.
    RateLimitedFor(Duration),
    /// The refund that it creates fails at once.
    RefundFails,
    /// It takes effect, and its answer is longer than any client should read: 4 MiB.
    Oversized,
    /// It takes effect, and its answer is no JSON.
    Garbage,
}

/// How a notice is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Without a fault: sent until it is accepted (a 2xx status).
    Plain,
    /// In this many copies, each sent until it is accepted.
    Copies(u8),
    /// After the next one.
    AfterNext,
    /// Before the answer to the call that caused it.
    BeforeReply,
    /// Not before [`FakeStripe::release_notices`](super::FakeStripe::release_notices).
    HeldBack,
    /// Never.
    Dropped,
    /// Without a fault, then once more with a signature that is ten minutes old.
    ReplayedOld,
    /// Without a fault, then once more with a new signature.
    ReplayedResigned,
    /// After a correctly signed one with another id and another amount.
    WrongAmount,
    /// After a correctly signed one with another id and another account.
    WrongAccount,
    /// After a correctly signed one with another id and another currency.
    WrongCurrency,
    /// After one with the same id that is signed with a foreign secret and has doubled amounts.
    Forged,
    /// Signed with the second secret alone.
    SecondSecret,
}

impl Delivery {
    /// Every delivery but the plain one.
    pub const HOSTILE: [Self; 12] = [
        Self::Copies(5),
        Self::AfterNext,
        Self::BeforeReply,
        Self::HeldBack,
        Self::Dropped,
        Self::ReplayedOld,
        Self::ReplayedResigned,
        Self::WrongAmount,
        Self::WrongAccount,
        Self::WrongCurrency,
        Self::Forged,
        Self::SecondSecret,
    ];
}

/// Random faults. All are drawn from the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed of the random numbers.
    pub seed: u64,
    /// Faults of calls, each with its share of a hundred calls.
    pub calls: Vec<(CallFault, u8)>,
    /// Faults of notices, each with its share of a hundred notices.
    pub notices: Vec<(Delivery, u8)>,
    /// How many notices are sent at the same time: 1 to 16, others are clamped.
    pub at_once: usize,
}

impl Plan {
    /// Creates a plan without faults, in which notices are sent one after the other.
    pub fn calm() -> Self {
        Self {
            seed: 0,
            calls: Vec::new(),
            notices: Vec::new(),
            at_once: 1,
        }
    }

    /// Creates a plan with faults in 25 % of the calls and 55 % of the notices, none of them held.
    pub fn hostile(seed: u64) -> Self {
        let calls = [
            CallFault::ErrorAfter,
            CallFault::ErrorBefore,
            CallFault::CloseAfter,
            CallFault::CloseBefore,
            CallFault::RateLimited,
        ];
        let notices = Delivery::HOSTILE.into_iter();
        let notices = notices.filter(|way| *way != Delivery::HeldBack);
        Self {
            seed,
            calls: calls.map(|fault| (fault, 5)).to_vec(),
            notices: notices.map(|way| (way, 5)).collect(),
            at_once: super::limits::DELIVERIES_MAX,
        }
    }
}

/// A plan with its random numbers and the scripted faults.
#[derive(Debug)]
pub(super) struct Fate {
    plan: Plan,
    entropy: SeededEntropy,
    next_calls: Vec<(Route, CallFault)>,
    next_notices: Vec<(String, Delivery)>,
}

impl Fate {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            entropy: SeededEntropy::new(plan.seed),
            plan,
            next_calls: Vec::new(),
            next_notices: Vec::new(),
        }
    }

    /// Replaces the plan; scripted faults stay.
    pub(super) fn follow(&mut self, plan: Plan) {
        self.entropy = SeededEntropy::new(plan.seed);
        self.plan = plan;
    }

    pub(super) fn at_once(&self) -> usize {
        self.plan.at_once.clamp(1, super::limits::DELIVERIES_MAX)
    }

    pub(super) fn script_call(&mut self, route: Route, fault: CallFault) {
        self.next_calls.push((route, fault));
    }

    pub(super) fn script_notice(&mut self, kind: &str, way: Delivery) {
        self.next_notices.push((kind.to_owned(), way));
    }

    /// Counts the scripted faults that have not happened yet.
    pub(super) fn to_come(&self) -> usize {
        self.next_calls.len() + self.next_notices.len()
    }

    /// Takes the scripted fault of this call, else draws one; `None` for no fault.
    pub(super) fn of_call(&mut self, route: Route) -> Option<CallFault> {
        if let Some(at) = self.next_calls.iter().position(|(own, _)| *own == route) {
            return Some(self.next_calls.remove(at).1);
        }
        draw(&self.entropy, &self.plan.calls)
    }

    /// Takes the scripted delivery of this notice, else draws one.
    pub(super) fn of_notice(&mut self, kind: &str) -> Delivery {
        if let Some(at) = self.next_notices.iter().position(|(own, _)| own == kind) {
            return self.next_notices.remove(at).1;
        }
        draw(&self.entropy, &self.plan.notices).unwrap_or(Delivery::Plain)
    }
}

/// Draws one of these by its share of a hundred; `None` for the rest of the hundred.
fn draw<T: Copy>(entropy: &SeededEntropy, shares: &[(T, u8)]) -> Option<T> {
    if shares.is_empty() {
        return None;
    }
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    let mut drawn = u64::from_le_bytes(bytes) % 100;
    for (what, share) in shares {
        match drawn.checked_sub(u64::from(*share)) {
            None => return Some(*what),
            Some(rest) => drawn = rest,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_fate() {
        let fates = |seed| {
            let mut fate = Fate::new(Plan::hostile(seed));
            let mut one = || (fate.of_call(Route::Capture), fate.of_notice("x"));
            (0..200).map(|_| one()).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
    }

    #[test]
    fn every_planned_way_comes_about_and_most_goes_well() {
        let plan = Plan::hostile(1);
        let mut fate = Fate::new(plan.clone());
        let calls: Vec<_> = (0..4_000).map(|_| fate.of_call(Route::Capture)).collect();
        for (fault, _) in plan.calls {
            let count = calls.iter().filter(|own| **own == Some(fault)).count();
            assert!((100..300).contains(&count), "{fault:?}: {count} of 4000");
        }
        let notices: Vec<_> = (0..4_000).map(|_| fate.of_notice("x")).collect();
        for (way, _) in plan.notices {
            let count = notices.iter().filter(|own| **own == way).count();
            assert!((100..300).contains(&count), "{way:?}: {count} of 4000");
        }
    }

    #[test]
    fn a_script_comes_first_and_once() {
        let mut fate = Fate::new(Plan::calm());
        fate.script_call(Route::Capture, CallFault::CloseAfter);
        fate.script_notice("a", Delivery::Dropped);
        assert_eq!(fate.to_come(), 2);
        assert_eq!(fate.of_call(Route::Cancel), None);
        assert_eq!(fate.of_call(Route::Capture), Some(CallFault::CloseAfter));
        assert_eq!(fate.of_call(Route::Capture), None);
        assert_eq!(fate.of_notice("b"), Delivery::Plain);
        assert_eq!(fate.of_notice("a"), Delivery::Dropped);
        assert_eq!(fate.to_come(), 0);
    }
}
