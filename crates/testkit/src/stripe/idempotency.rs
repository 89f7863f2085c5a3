//! Stripe's rules for idempotency keys: the first answer to a key is given again to the same
//! parameters, also a 500; other parameters are refused; a key at work is in conflict. A key is
//! forgotten after a day.

use std::collections::BTreeMap;

use super::failure::Failure;
use super::limits::KEY_MS;

/// An answer of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    /// Whether it was given before.
    pub(super) is_replayed: bool,
}

/// The keys of an account.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<String, Kept>);

#[derive(Debug)]
struct Kept {
    parameters: String,
    /// Nothing while it is at work.
    answer: Option<Answer>,
    since_ms: i64,
}

/// What a key leads to.
#[derive(Debug)]
pub(super) enum Begun {
    /// Nobody used it: do it.
    Fresh,
    /// It was done.
    Replayed(Answer),
    /// It cannot be used.
    Refused(Failure),
}

impl Keys {
    /// Begins to work on a key.
    pub(super) fn begin(&mut self, now_ms: i64, key: &str, parameters: &str) -> Begun {
        self.0
            .retain(|_, kept| kept.answer.is_none() || now_ms - kept.since_ms < KEY_MS);
        let Some(kept) = self.0.get(key) else {
            let kept = Kept {
                parameters: parameters.to_owned(),
                answer: None,
                since_ms: now_ms,
            };
            self.0.insert(key.to_owned(), kept);
            return Begun::Fresh;
        };
        match &kept.answer {
            _ if kept.parameters != parameters => Begun::Refused(Failure::key_reused()),
            None => Begun::Refused(Failure::key_in_use()),
            Some(answer) => Begun::Replayed(Answer {
                is_replayed: true,
                ..answer.clone()
            }),
        }
    }

    /// Keeps the answer to a key.
    pub(super) fn finish(&mut self, key: &str, answer: &Answer) {
        if let Some(kept) = self.0.get_mut(key) {
            kept.answer = Some(answer.clone());
        }
    }

    /// Forgets a key whose call did not run.
    pub(super) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Answer {
        Answer {
            status,
            body: "{}".to_owned(),
            is_replayed: false,
        }
    }

    fn status(begun: &Begun) -> u16 {
        match begun {
            Begun::Fresh => 0,
            Begun::Replayed(answer) => answer.status,
            Begun::Refused(failure) => failure.status,
        }
    }

    #[test]
    fn the_first_answer_is_given_again_also_a_failure() {
        for given in [200, 402, 500] {
            let mut keys = Keys::default();
            assert_eq!(status(&keys.begin(0, "k", "a")), 0);
            keys.finish("k", &answer(given));
            let Begun::Replayed(again) = keys.begin(KEY_MS - 1, "k", "a") else {
                panic!("not replayed");
            };
            assert_eq!((again.status, again.is_replayed), (given, true));
        }
    }

    #[test]
    fn other_parameters_are_refused() {
        let mut keys = Keys::default();
        keys.begin(0, "k", "a");
        assert_eq!(status(&keys.begin(0, "k", "b")), 400);
        keys.finish("k", &answer(200));
        assert_eq!(status(&keys.begin(0, "k", "b")), 400);
        assert_eq!(status(&keys.begin(0, "other", "b")), 0);
    }

    #[test]
    fn a_key_at_work_is_in_conflict_and_may_be_given_up() {
        let mut keys = Keys::default();
        keys.begin(0, "k", "a");
        assert_eq!(status(&keys.begin(0, "k", "a")), 409);
        keys.forget("k");
        assert_eq!(status(&keys.begin(0, "k", "a")), 0);
    }

    #[test]
    fn a_key_is_forgotten_after_a_day() {
        let mut keys = Keys::default();
        keys.begin(0, "k", "a");
        keys.finish("k", &answer(200));
        assert_eq!(status(&keys.begin(KEY_MS, "k", "b")), 0);
    }
}
