//! Stripe's rules for idempotency keys: the first answer to a key is given again to the same
//! parameters, also a 500; other parameters are refused; a key in use is a conflict. A key is
//! removed after a day, or when there are too many younger ones.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::limits::{KEY_MS, KEYS_MAX};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    /// Whether it is the stored answer of an idempotency key.
    #[serde(skip)]
    pub(super) is_replayed: bool,
    /// `Retry-After`, seconds.
    #[serde(skip)]
    pub(super) retry_after_s: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    kept: BTreeMap<String, KeyRecord>,
    /// Since when (ms) and which key, by age; may still have keys that were removed.
    oldest_first: VecDeque<(i64, String)>,
    /// Keys answered since the last [`Keys::take_answered`].
    answered: Vec<String>,
}

/// A key with its parameters and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    key: String,
    parameters: String,
    /// `None` while its first call is in progress.
    answer: Option<Answer>,
    since_ms: i64,
}

/// How a call with a key continues.
#[derive(Debug)]
pub(super) enum KeyState {
    /// The key is unused: run the call.
    Fresh,
    /// The call ran before, with this answer.
    Replayed(Answer),
    /// The key cannot be used for the call.
    Refused(Failure),
}

impl Keys {
    /// Looks a key up and, if it is unused, marks it as in use.
    pub(super) fn begin(&mut self, now_ms: i64, key: &str, parameters: &str) -> KeyState {
        self.forget_old(now_ms);
        let Some(kept) = self.kept.get(key) else {
            let kept = KeyRecord {
                key: key.to_owned(),
                parameters: parameters.to_owned(),
                answer: None,
                since_ms: now_ms,
            };
            self.put(kept);
            return KeyState::Fresh;
        };
        match &kept.answer {
            _ if kept.parameters != parameters => KeyState::Refused(Failure::key_reused()),
            None => KeyState::Refused(Failure::key_in_use()),
            Some(answer) => KeyState::Replayed(Answer {
                is_replayed: true,
                ..answer.clone()
            }),
        }
    }

    /// Stores the answer of a key.
    pub(super) fn finish(&mut self, key: &str, answer: &Answer) {
        if let Some(kept) = self.kept.get_mut(key) {
            kept.answer = Some(answer.clone());
            self.answered.push(key.to_owned());
        }
    }

    /// Takes the keys answered since the last call.
    pub(super) fn take_answered(&mut self) -> Vec<KeyRecord> {
        let answered = std::mem::take(&mut self.answered);
        let kept = |key: &String| self.kept.get(key).cloned();
        answered.iter().filter_map(kept).collect()
    }

    pub(super) fn all_answered(&self) -> Vec<KeyRecord> {
        let kept = |(since_ms, key): &(i64, String)| {
            let kept = self.kept.get(key)?;
            (kept.answer.is_some() && kept.since_ms == *since_ms).then(|| kept.clone())
        };
        self.oldest_first.iter().filter_map(kept).collect()
    }

    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Adds a key as the youngest.
    pub(super) fn put(&mut self, kept: KeyRecord) {
        self.oldest_first
            .push_back((kept.since_ms, kept.key.clone()));
        self.kept.insert(kept.key.clone(), kept);
    }

    /// Removes keys from the oldest on, up to the first that is young enough or in use.
    fn forget_old(&mut self, now_ms: i64) {
        while let Some((since_ms, key)) = self.oldest_first.front() {
            let is_young = now_ms - since_ms < KEY_MS && self.oldest_first.len() <= KEYS_MAX;
            // A key that was removed and used again is in here once more, with its own time.
            let kept = self.kept.get(key).filter(|kept| kept.since_ms == *since_ms);
            if is_young || kept.is_some_and(|kept| kept.answer.is_none()) {
                return;
            }
            if kept.is_some() {
                self.kept.remove(key);
            }
            self.oldest_first.pop_front();
        }
    }

    /// Removes a key whose call did not run.
    pub(super) fn forget(&mut self, key: &str) {
        self.kept.remove(key);
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
            retry_after_s: None,
        }
    }

    fn status(begun: &KeyState) -> u16 {
        match begun {
            KeyState::Fresh => 0,
            KeyState::Replayed(answer) => answer.status,
            KeyState::Refused(failure) => failure.status,
        }
    }

    #[test]
    fn the_first_answer_is_given_again_also_a_failure() {
        for given in [200, 402, 500] {
            let mut keys = Keys::default();
            assert_eq!(status(&keys.begin(0, "k", "a")), 0);
            keys.finish("k", &answer(given));
            let KeyState::Replayed(again) = keys.begin(KEY_MS - 1, "k", "a") else {
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
    fn the_oldest_of_too_many_keys_is_forgotten() {
        let mut keys = Keys::default();
        for n in 0..=KEYS_MAX {
            let key = n.to_string();
            assert_eq!(status(&keys.begin(0, &key, "a")), 0);
            keys.finish(&key, &answer(200));
        }
        assert_eq!(status(&keys.begin(0, "1", "a")), 200);
        assert_eq!(status(&keys.begin(0, "0", "a")), 0);
    }

    #[test]
    fn a_key_is_forgotten_after_a_day() {
        let mut keys = Keys::default();
        keys.begin(0, "k", "a");
        keys.finish("k", &answer(200));
        assert_eq!(status(&keys.begin(KEY_MS, "k", "b")), 0);
    }
}
