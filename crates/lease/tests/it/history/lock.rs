//! One name: who held it when, and with which token.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Violation;
use super::record::{End, Grant, History, Refused};
use super::search::{Failure, Model, Span, find_order};

/// When a refusal is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// Only while the name is held, or may be held.
    NeedHolder,
    /// Also when it is free: others wait in a queue, or a vote was split.
    Free,
}

/// Everything that is wrong with the grants of one name. What two grants show by themselves is told
/// by them; the search tells only what they do not.
pub(super) fn check(history: &History, name: &str, refusals: Refusals) -> Vec<Violation> {
    let mut grants: Vec<&Grant> = history
        .grants
        .iter()
        .filter(|grant| grant.name == name)
        .collect();
    grants.sort_by_key(|grant| grant.returned);
    let mut violations = two_holders(history, &grants);
    violations.extend(repeated_tokens(&grants));
    violations.extend(fallen_tokens(&grants));
    if violations.is_empty() {
        violations.extend(NameModel::of(history, name, grants, refusals).check());
    }
    violations
}

fn two_holders(history: &History, grants: &[&Grant]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut held: Vec<&Grant> = Vec::new();
    for &second in grants {
        held.retain(|first| first.held_until() > second.returned);
        // What was heard later may have run, and been lost, before the other was asked for.
        let explained =
            |first: &Grant| history.may_lose(first, second) || history.may_lose(second, first);
        let clashing = held.iter().filter(|first| !explained(first));
        violations.extend(clashing.map(|&first| Violation::TwoHolders {
            name: second.name.clone(),
            first: Box::new(first.clone()),
            second: Box::new(second.clone()),
        }));
        if second.held_until() > second.returned {
            held.push(second);
        }
    }
    violations
}

fn repeated_tokens(grants: &[&Grant]) -> Vec<Violation> {
    let mut counts: BTreeMap<u64, Vec<&Grant>> = BTreeMap::new();
    for grant in grants {
        if let Some(number) = grant.number() {
            counts.entry(number).or_default().push(grant);
        }
    }
    let repeated = counts.into_values().filter(|grants| grants.len() > 1);
    repeated
        .filter_map(|grants| {
            let grant = grants.first()?;
            Some(Violation::TokenRepeated {
                name: grant.name.clone(),
                token: grant.token?,
            })
        })
        .collect()
}

/// `grants` in the order of their returns.
fn fallen_tokens(grants: &[&Grant]) -> Vec<Violation> {
    let mut called: Vec<&Grant> = grants.to_vec();
    called.sort_by_key(|grant| grant.invoked);
    let mut returned = grants.iter().peekable();
    let mut highest = None;
    let mut violations = Vec::new();
    for grant in called {
        while let Some(earlier) = returned.next_if(|earlier| earlier.returned < grant.invoked) {
            highest = highest.max(earlier.token);
        }
        if let (Some(from), Some(to)) = (highest, grant.token)
            && to.number() < from.number()
        {
            violations.push(Violation::TokenFell {
                name: grant.name.clone(),
                from,
                to,
            });
        }
    }
    violations
}

/// The operations on one name, and what each may do.
struct NameModel<'a> {
    history: &'a History,
    name: &'a str,
    grants: Vec<&'a Grant>,
    ops: Vec<(Span, Op)>,
    refusals: Refusals,
    /// When the first acquire without a known outcome was called.
    uncertain_from: Option<Duration>,
}

#[derive(Clone, Copy)]
enum Op {
    /// Of the grant at this place.
    Grant(usize),
    /// Of the grant at this place.
    Release(usize),
    Refusal,
}

/// Who holds the name, by the place of the grant, and the highest token so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct NameState {
    holder: Option<usize>,
    highest: u64,
}

impl<'a> NameModel<'a> {
    fn of(history: &'a History, name: &'a str, grants: Vec<&'a Grant>, refusals: Refusals) -> Self {
        let refused = history
            .refusals
            .iter()
            .filter(|refused| refused.name == name);
        let uncertain = history.uncertain.iter().filter(|call| call.name == name);
        let mut ops: Vec<(Span, Op)> = refused.map(refusal).collect();
        for (place, grant) in grants.iter().enumerate() {
            let Grant {
                invoked, returned, ..
            } = **grant;
            ops.push((Span { invoked, returned }, Op::Grant(place)));
            if let End::Released { invoked, returned } = grant.end {
                ops.push((Span { invoked, returned }, Op::Release(place)));
            }
        }
        ops.sort_by_key(|(span, _)| span.invoked);
        Self {
            uncertain_from: uncertain.map(|call| call.invoked).min(),
            history,
            name,
            grants,
            ops,
            refusals,
        }
    }

    fn check(&self) -> Option<Violation> {
        let spans: Vec<Span> = self.ops.iter().map(|(span, _)| *span).collect();
        let of = self.name.to_owned();
        match find_order(self, &spans, NameState::default()) {
            Ok(()) => None,
            Err(Failure::TooWide) => Some(Violation::TooWide { of }),
            Err(Failure::Stuck(op)) => {
                let stuck = spans.get(op).map(|span| span.invoked).unwrap_or_default();
                Some(Violation::NoOrder { of, stuck })
            }
        }
    }

    /// Whether the name may be free for `next` though `holder` has not released it.
    fn may_end(&self, holder: usize, next: &Grant, horizon: Duration) -> bool {
        let Some(&first) = self.grants.get(holder) else {
            return false;
        };
        let lapsed = matches!(first.end, End::Lapsed { at } if at <= horizon);
        lapsed || self.history.may_lose(first, next)
    }

    fn after_grant(&self, state: NameState, place: usize, horizon: Duration) -> Option<NameState> {
        let grant = self.grants.get(place)?;
        let free = state
            .holder
            .is_none_or(|holder| self.may_end(holder, grant, horizon));
        let number = grant.number();
        let rises = number.is_none_or(|number| number > state.highest);
        (free && rises).then_some(NameState {
            holder: Some(place),
            highest: number.unwrap_or(state.highest),
        })
    }
}

fn refusal(refused: &Refused) -> (Span, Op) {
    let Refused {
        invoked, returned, ..
    } = *refused;
    (Span { invoked, returned }, Op::Refusal)
}

impl Model for NameModel<'_> {
    type State = NameState;

    fn step(&self, state: NameState, op: usize, horizon: Duration) -> Option<NameState> {
        match self.ops.get(op)?.1 {
            Op::Grant(place) => self.after_grant(state, place, horizon),
            Op::Release(place) => (state.holder == Some(place)).then_some(NameState {
                holder: None,
                ..state
            }),
            Op::Refusal => {
                let explained = state.holder.is_some()
                    || self.refusals == Refusals::Free
                    || self.uncertain_from.is_some_and(|from| from <= horizon);
                explained.then_some(state)
            }
        }
    }
}
