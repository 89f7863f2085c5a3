//! Planted histories: a judge that has not been seen to object is none.

use super::super::textbook::history_of;
use super::*;

/// Builds a history in which these buyers bought these seats, each as if the seat were free.
fn history(sales: &[(u32, u32)]) -> History {
    let sold: Vec<_> = sales.iter().map(|(buyer, seat)| (*seat, *buyer)).collect();
    history_of(10, &sold)
}

fn winners(sales: &[(u32, u32)]) -> Vec<Want> {
    let want = |(buyer, seat): &(u32, u32)| Want {
        buyer: *buyer,
        seats: vec![*seat],
    };
    sales.iter().map(want).collect()
}

fn judged(answers: &[(u32, u32)], stored: &[(u32, u32)]) -> Vec<(String, Judged)> {
    let promised = Winners {
        rounds: winners(answers),
        ..Winners::default()
    };
    let judged = judge(&promised, &history(stored));
    vec![("1 seat, 5 buyers".to_owned(), judged)]
}

const SOUND: [(u32, u32); 2] = [(1, 0), (2, 1)];
const TWICE: [(u32, u32); 3] = [(1, 0), (2, 1), (3, 0)];

#[test]
fn a_sound_cell_of_a_guarded_strategy_has_no_fault() {
    let cells = judged(&SOUND, &SOUND);
    assert_eq!(faults("queue", Promise::SoldOnce, &cells), [""; 0]);
    assert_eq!((cells[0].1.acknowledged, cells[0].1.recorded), (2, 2));
}

#[test]
fn a_guarded_strategy_that_sells_twice_is_caught_by_both_judges() {
    let found = faults("queue", Promise::SoldOnce, &judged(&TWICE, &TWICE));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("1 units were sold twice"), "{found:?}");
    assert!(found[1].contains("I1 sold-twice"), "{found:?}");
}

#[test]
fn each_judge_catches_it_without_the_other() {
    // Two buyers were promised the same seat, the database has one of them.
    let answered = faults("queue", Promise::SoldOnce, &judged(&TWICE, &SOUND));
    let expected = ["3 units were promised", "1 units were sold twice"];
    for (found, expected) in answered.iter().zip(expected) {
        assert!(found.contains(expected), "{answered:?}");
    }
    assert_eq!(answered.len(), 2, "{answered:?}");
    // The database sold it twice, and one of the buyers got no answer.
    let stored = faults("queue", Promise::SoldOnce, &judged(&SOUND, &TWICE));
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert!(stored[0].contains("the auditor found"), "{stored:?}");
}

#[test]
fn a_winner_who_cannot_confirm_is_a_fault_though_nothing_was_sold_twice() {
    let promised = Winners {
        rounds: winners(&SOUND),
        unconfirmed: BTreeMap::from([("confirm: outcome_unknown".to_owned(), 1)]),
        ..Winners::default()
    };
    let cell = |sold| {
        (
            "1 seat, 5 buyers".to_owned(),
            judge(&promised, &history(sold)),
        )
    };
    let found = faults("queue", Promise::SoldOnce, &[cell(&SOUND[..1])]);
    assert!(found[0].contains("2 units were promised"), "{found:?}");
    assert!(
        found[1].ends_with("could not confirm: 1 confirm: outcome_unknown"),
        "{found:?}"
    );
    // It may have been stored all the same.
    assert_eq!(faults("queue", Promise::SoldOnce, &[cell(&SOUND)]).len(), 1);
}

#[test]
fn a_cell_without_a_winner_proves_nothing() {
    let found = faults("queue", Promise::SoldOnce, &judged(&[], &[]));
    assert!(found[0].contains("no buyer won"), "{found:?}");
}

#[test]
fn naive_must_sell_twice_and_the_auditor_must_say_so() {
    let naive =
        |answers: &[_], stored: &[_]| faults("naive", Promise::Broken, &judged(answers, stored));
    assert_eq!(naive(&TWICE, &TWICE), [""; 0]);
    let guarded = naive(&SOUND, &SOUND);
    assert!(guarded[0].contains("proves nothing"), "{guarded:?}");
    let unseen = naive(&TWICE, &SOUND);
    assert!(
        unseen
            .iter()
            .any(|fault| fault.contains("the auditor saw 0")),
        "{unseen:?}"
    );
}

#[test]
fn a_double_sale_of_the_warm_up_is_in_no_table_and_fails_a_guarded_strategy() {
    let promised = Winners {
        warm_up: winners(&TWICE),
        rounds: winners(&[(4, 7)]),
        ..Winners::default()
    };
    let stored = history(&[TWICE.as_slice(), &[(4, 7)]].concat());
    let judged = judge(&promised, &stored);
    assert_eq!((judged.double_sales, judged.warm_up_double_sales), (0, 1));
    assert_eq!((judged.acknowledged, judged.recorded), (4, 4));
    let cells = [("1 seat, 5 buyers".to_owned(), judged)];
    let found = faults("queue", Promise::SoldOnce, &cells);
    assert!(found[0].contains("1 units were sold twice"), "{found:?}");
    assert!(found[1].contains("I1 sold-twice"), "{found:?}");
    // Nor is a warm-up what shows that buyers met.
    let naive = faults("naive", Promise::Broken, &cells);
    assert!(naive[0].contains("proves nothing"), "{naive:?}");
}
