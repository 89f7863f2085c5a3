//! Logging of a lasting failure: when it begins, now and then while it lasts, and when it ends.

use soldonce_clock::BootTime;

use crate::limits::TROUBLE_EVERY_MS;

/// A failure that may repeat, and when it is logged.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// When it is logged again; `None` while there is no failure.
    next: Option<BootTime>,
}

impl Trouble {
    /// Notes a failure; tells whether to log it now.
    pub(crate) fn lasts(&mut self, now: BootTime) -> bool {
        let is_due = self.next.is_none_or(|next| now >= next);
        if is_due {
            self.next = Some(now.plus_ms(TROUBLE_EVERY_MS));
        }
        is_due
    }

    /// Notes that it is over; tells whether there was a failure.
    pub(crate) fn ends(&mut self) -> bool {
        self.next.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_its_begin_now_and_then_and_at_its_end() {
        let at = |ms| BootTime::default().plus_ms(ms);
        let mut trouble = Trouble::default();
        assert!(!trouble.ends(), "there was none");
        let told = (0..=TROUBLE_EVERY_MS).step_by(200);
        let told: Vec<u64> = told.filter(|ms| trouble.lasts(at(*ms))).collect();
        assert_eq!(told, [0, TROUBLE_EVERY_MS]);
        assert!(trouble.ends());
        assert!(!trouble.ends(), "told once");
        assert!(trouble.lasts(at(TROUBLE_EVERY_MS)), "another begins");
    }
}
