//! Compares a ledger's clock with that of its machine.

use soldonce_engine::ClockState;

use super::Finding;

/// Judges how far the ledger's clock is ahead of `whose` clock, milliseconds.
pub(super) fn judge(ahead: i64, whose: &str) -> Finding {
    let what = "ledger clock";
    let shown = format!("{ahead} ms ahead of {whose}");
    match ClockState::of(ahead) {
        ClockState::Together => Finding::good(what, shown),
        ClockState::Ahead => {
            let advice =
                "that clock has stepped back: the ledger's runs at half speed until they meet";
            Finding::remark(what, shown, advice)
        }
        ClockState::FarAhead => {
            let advice = "set that clock if it is wrong; else stop every server and run `soldonce clock \
                          correct`: holds keep the time they have left";
            Finding::wrong(what, shown, advice)
        }
    }
}
