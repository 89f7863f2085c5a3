//! Counts of units by state.

use crate::StateKind;

/// How many units are in each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    pub free: u32,
    /// In holds, as written down.
    pub held: u32,
    pub sold: u32,
    pub blocked: u32,
}

impl Tally {
    pub fn all_free(units: u32) -> Self {
        Self {
            free: units,
            ..Self::default()
        }
    }

    pub fn total(self) -> u32 {
        let all = [self.free, self.held, self.sold, self.blocked];
        all.into_iter().fold(0, u32::saturating_add)
    }

    /// Counts one unit that goes from one state to another.
    ///
    /// # Panics
    /// When no unit is in state `from`.
    pub fn shift(&mut self, from: StateKind, to: StateKind) {
        let count = self.count_mut(from);
        *count = count
            .checked_sub(1)
            .expect("the tally counts the unit that leaves");
        let count = self.count_mut(to);
        *count = count.saturating_add(1);
    }

    fn count_mut(&mut self, kind: StateKind) -> &mut u32 {
        match kind {
            StateKind::Free => &mut self.free,
            StateKind::Held => &mut self.held,
            StateKind::Sold => &mut self.sold,
            StateKind::Blocked => &mut self.blocked,
        }
    }
}
