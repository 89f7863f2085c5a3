//! What the scripts promise (lease.md 6.5), one promise each.

use super::bench::{Aim, Bench, CLAIM_MS, KEEP_MS, KEY};

const ANN: u64 = 1;
const BOB: u64 = u64::MAX;

const CLAIMED: [i64; 2] = [1, CLAIM_MS];
const NOTHING_AGAINST: [i64; 2] = [1, 0];
const OWN: [i64; 1] = [2];

/// A conflict as the script tells it.
fn conflict(index: i64, kind: char, left_ms: i64, version: i64) -> [i64; 4] {
    [index, i64::from(u32::from(kind)), left_ms, version]
}

fn refused(conflicts: &[[i64; 4]]) -> Vec<i64> {
    [vec![0], conflicts.concat()].concat()
}

#[test]
pub(super) fn a_claim_keeps_others_away_and_ends_by_itself() {
    let zone = Bench::new();
    assert_eq!(zone.claim(ANN, &[1, 2]), CLAIMED);
    zone.advance(CLAIM_MS - 1);
    assert_eq!(zone.claim(BOB, &[3, 2]), refused(&[conflict(2, 'c', 1, 0)]));
    zone.advance(1);
    assert_eq!(zone.claim(BOB, &[3, 2]), CLAIMED);
}

#[test]
pub(super) fn all_or_nothing_with_every_conflict() {
    let zone = Bench::new();
    zone.claim(ANN, &[1]);
    zone.note(('h', 2, 7, 60_000, ANN));
    zone.note(('s', 3, 9, 600_000, 0));
    let all = refused(&[
        conflict(2, 'c', CLAIM_MS, 0),
        conflict(3, 'h', 60_000, 7),
        conflict(4, 's', 600_000, 9),
    ]);
    assert_eq!(zone.claim(BOB, &[4, 1, 2, 3]), all);
    assert_eq!(zone.claim(ANN, &[4]), CLAIMED, "nothing of it was claimed");
}

#[test]
pub(super) fn one_conflict_is_enough() {
    let zone = Bench::new();
    zone.note(('s', 3, 9, 600_000, 0));
    assert_eq!(
        zone.claim(BOB, &[3]),
        refused(&[conflict(1, 's', 600_000, 9)])
    );
    assert_eq!(
        zone.claim(BOB, &[2, 3]),
        refused(&[conflict(2, 's', 600_000, 9)])
    );
    assert_eq!(zone.claim(ANN, &[2]), CLAIMED);
}

#[test]
pub(super) fn his_own_claim_passes_and_begins_anew() {
    let zone = Bench::new();
    assert_eq!(zone.claim(ANN, &[1]), CLAIMED);
    zone.advance(CLAIM_MS - 1);
    assert_eq!(zone.claim(ANN, &[1, 2]), CLAIMED, "a double click");
    zone.advance(CLAIM_MS - 1);
    assert_eq!(zone.claim(BOB, &[1]), refused(&[conflict(1, 'c', 1, 0)]));
}

#[test]
pub(super) fn his_own_hold_is_for_the_ledger_to_see() {
    let zone = Bench::new();
    zone.note(('h', 1, 3, 60_000, ANN));
    zone.note(('s', 2, 3, 60_000, 0));
    assert_eq!(zone.claim(ANN, &[1]), OWN);
    assert_eq!(
        zone.claim(ANN, &[2, 1, 3]),
        OWN,
        "other units change nothing"
    );
    assert_eq!(zone.claim(BOB, &[3]), CLAIMED, "nothing was claimed");
    assert_eq!(zone.entry(1), format!("h|3|{}|1", zone.now_ms() + 60_000));
    zone.advance(60_000);
    assert_eq!(zone.claim(ANN, &[1]), CLAIMED, "it is over");
}

#[test]
pub(super) fn a_hold_is_believed_until_its_end_and_not_at_it() {
    let zone = Bench::new();
    zone.note(('h', 1, 3, 60_000, ANN));
    zone.advance(59_999);
    assert_eq!(zone.claim(BOB, &[1]), refused(&[conflict(1, 'h', 1, 3)]));
    zone.advance(1);
    assert_eq!(zone.claim(BOB, &[1]), CLAIMED);
}

#[test]
pub(super) fn what_is_sold_is_refused_to_everybody_for_a_while() {
    let zone = Bench::new();
    // No holder is written down for it, and a holder of these bits is no exception.
    zone.note(('s', 1, 3, 600_000, ANN));
    assert_eq!(
        zone.claim(ANN, &[1]),
        refused(&[conflict(1, 's', 600_000, 3)])
    );
    zone.advance(600_000);
    assert_eq!(zone.claim(BOB, &[1]), CLAIMED, "one asks the ledger again");
    assert_eq!(
        zone.claim(ANN, &[1]),
        refused(&[conflict(1, 'c', CLAIM_MS, 3)])
    );
}

#[test]
pub(super) fn a_look_claims_nothing() {
    let zone = Bench::new();
    let look = |units: &[u32]| zone.try_as(BOB, Aim::Look, units.iter().copied()).unwrap();
    assert_eq!(look(&[1, 2]), NOTHING_AGAINST);
    assert_eq!(zone.redis.cli(&["EXISTS", KEY]).unwrap(), "0");
    zone.claim(ANN, &[1]);
    assert_eq!(look(&[2, 1]), refused(&[conflict(2, 'c', CLAIM_MS, 0)]));
}

#[test]
pub(super) fn a_late_note_brings_no_old_state_back() {
    let zone = Bench::new();
    assert!(zone.note(('h', 1, 9, 60_000, ANN)));
    assert!(zone.note(('f', 1, 10, 0, 0)));
    assert!(!zone.note(('h', 1, 9, 60_000, ANN)), "late");
    assert_eq!(zone.claim(BOB, &[1]), CLAIMED);
    assert!(zone.note(('s', 1, 12, 600_000, 0)));
    assert!(!zone.note(('f', 1, 10, 0, 0)), "late");
    assert!(!zone.note(('h', 1, 11, 60_000, BOB)), "late");
    assert_eq!(
        zone.claim(BOB, &[1]),
        refused(&[conflict(1, 's', 600_000, 12)])
    );
}

#[test]
pub(super) fn a_note_that_comes_twice_changes_nothing() {
    let zone = Bench::new();
    for _ in 0..2 {
        assert!(zone.note(('h', 1, 9, 60_000, ANN)));
        assert_eq!(
            zone.claim(BOB, &[1]),
            refused(&[conflict(1, 'h', 60_000, 9)])
        );
    }
    for _ in 0..2 {
        assert!(zone.note(('f', 1, 10, 0, 0)));
        assert_eq!(zone.try_as(BOB, Aim::Look, [1]).unwrap(), NOTHING_AGAINST);
    }
    assert!(!zone.note(('h', 1, 9, 60_000, ANN)));
}

#[test]
pub(super) fn of_two_notes_in_one_call_the_newer_stays() {
    let zone = Bench::new();
    let notes = [
        ('s', 1, 5, 600_000, 0),
        ('h', 1, 4, 60_000, ANN),
        ('h', 2, 1, 50, BOB),
    ];
    assert_eq!(zone.note_all(&notes).unwrap(), [1, 0, 1]);
    assert_eq!(
        zone.claim(BOB, &[1]),
        refused(&[conflict(1, 's', 600_000, 5)])
    );
}

#[test]
pub(super) fn a_claim_keeps_the_version() {
    let zone = Bench::new();
    zone.note(('f', 1, 6, 0, 0));
    assert_eq!(zone.claim(ANN, &[1]), CLAIMED);
    assert!(!zone.note(('h', 1, 5, 60_000, BOB)), "late");
    assert_eq!(zone.drop_of(ANN, &[1]), [1]);
    assert!(
        !zone.note(('h', 1, 5, 60_000, BOB)),
        "late, and the claim is gone"
    );
    assert_eq!(zone.claim(BOB, &[1]), CLAIMED);
}

#[test]
pub(super) fn what_the_ledger_says_replaces_a_claim() {
    let zone = Bench::new();
    zone.claim(ANN, &[1, 2]);
    zone.note(('h', 1, 1, 60_000, ANN));
    zone.note(('h', 2, 1, 60_000, BOB));
    assert_eq!(zone.drop_of(ANN, &[1, 2]), [0, 0]);
    assert_eq!(zone.claim(ANN, &[1]), OWN);
    assert_eq!(
        zone.claim(ANN, &[2]),
        refused(&[conflict(1, 'h', 60_000, 1)])
    );
}

#[test]
pub(super) fn only_his_own_claims_are_given_up() {
    let zone = Bench::new();
    zone.claim(ANN, &[1, 2]);
    zone.note(('h', 3, 1, 60_000, ANN));
    assert_eq!(zone.drop_of(BOB, &[1, 2, 3]), [0, 0, 0]);
    assert_eq!(
        zone.claim(BOB, &[1]),
        refused(&[conflict(1, 'c', CLAIM_MS, 0)])
    );
    assert_eq!(zone.drop_of(ANN, &[2, 3, 4]), [1, 0, 0]);
    assert_eq!(zone.claim(BOB, &[2]), CLAIMED);
    assert_eq!(
        zone.claim(BOB, &[3]),
        refused(&[conflict(1, 'h', 60_000, 1)])
    );
}

#[test]
pub(super) fn no_belief_is_longer_than_it_may_be() {
    let zone = Bench::new();
    let entry = |kind, left_ms| format!("{kind}|0|{}|7", zone.now_ms() + left_ms);
    for (unit, (kind, most_ms)) in [('c', CLAIM_MS), ('h', KEEP_MS), ('s', KEEP_MS)]
        .into_iter()
        .enumerate()
    {
        let unit = u32::try_from(unit).unwrap();
        zone.plant(unit, &entry(kind, most_ms));
        let told = refused(&[conflict(1, kind, most_ms, 0)]);
        assert_eq!(zone.claim(ANN, &[unit]), told);
        zone.plant(unit, &entry(kind, most_ms + 1));
        assert_eq!(zone.claim(ANN, &[unit]), CLAIMED, "{kind}");
    }
}

#[test]
pub(super) fn what_is_no_entry_of_ours_stops_no_buyer() {
    let zone = Bench::new();
    let ends = zone.now_ms() + 1_000;
    let long = "9".repeat(400);
    let garbage = [
        String::new(),
        "sold".to_owned(),
        format!("x|1|{ends}|7"),
        format!("h|1|{ends}"),
        format!("h|1|{ends}|7|"),
        format!("h|-1|{ends}|7"),
        format!("h|1|{long}|7"),
        format!("h|{long}|{ends}|7"),
    ];
    for (unit, entry) in (0..).zip(&garbage) {
        zone.plant(unit, entry);
        assert_eq!(zone.claim(ANN, &[unit]), CLAIMED, "{entry:?}");
        zone.plant(unit, entry);
        assert_eq!(zone.drop_of(7, &[unit]), [0], "{entry:?}");
        // Nor does it keep the truth out.
        assert!(zone.note(('s', unit, 1, 600_000, 0)), "{entry:?}");
    }
}

#[test]
pub(super) fn a_call_is_bounded_and_a_refused_one_writes_nothing() {
    let zone = Bench::new();
    let many = |count: u32| zone.try_as(ANN, Aim::Claim, 0..count);
    let notes = |count| {
        (0..count)
            .map(|unit| ('f', unit, 1, 0, 0))
            .collect::<Vec<_>>()
    };
    for (is_refused, why) in [
        (many(0).is_err(), "no unit"),
        (many(101).is_err(), "101 units"),
        (zone.note_all(&[]).is_err(), "no note"),
        (zone.note_all(&notes(101)).is_err(), "101 notes"),
    ] {
        assert!(is_refused, "{why}");
    }
    assert_eq!(zone.redis.cli(&["EXISTS", KEY]).unwrap(), "0");
    assert_eq!(zone.note_all(&notes(100)).unwrap(), [1; 100]);
    assert_eq!(many(100).unwrap(), CLAIMED);
}

#[test]
pub(super) fn a_zone_ends_by_itself() {
    let zone = Bench::new();
    let ends_in_ms = || {
        zone.redis
            .cli(&["PTTL", KEY])
            .unwrap()
            .parse::<i64>()
            .unwrap()
    };
    zone.claim(ANN, &[1]);
    assert!((1..=KEEP_MS).contains(&ends_in_ms()), "{}", ends_in_ms());
    zone.redis.cli(&["DEL", KEY]).unwrap();
    zone.note(('h', 1, 1, 60_000, ANN));
    assert!((1..=KEEP_MS).contains(&ends_in_ms()), "{}", ends_in_ms());
}

#[test]
fn a_key_of_another_type_is_refused_and_left_alone() {
    let zone = Bench::new();
    zone.redis.cli(&["LPUSH", KEY, "x"]).unwrap();
    assert!(zone.try_as(ANN, Aim::Claim, [1]).is_err());
    assert!(zone.note_all(&[('h', 1, 1, 60_000, ANN)]).is_err());
    assert_eq!(zone.redis.cli(&["LLEN", KEY]).unwrap(), "1");
}
