//! Odd names: those that are legal come back from every backend as they were and are kept apart, all
//! others are refused before anything is asked of one. `lease.md` 1.1 and 11.16.

use proptest::prelude::*;
use soldonce_lease::{LeaseTicket, Leases, Name, block_on};

/// Legal, and like keys, numbers, paths or words of some store.
pub(crate) const LEGAL: [&str; 22] = [
    ".", "..", "-", "--", ":", "::", "_", "a", "A", "a.b", "a:b", "a:b:c", "l:x", "q:x", "t:", "f",
    "w", "0", "-1", "1e9", "null", "NaN",
];

/// Pairs of group and name that only a careless key makes alike.
pub(crate) const GROUPED: [(&str, &str); 6] = [
    ("a", "b:c"),
    ("a:b", "c"),
    ("a", "a"),
    ("A", "a"),
    ("l:a", "b"),
    ("-", "-"),
];

const REFUSED: [&str; 32] = [
    "",
    " ",
    "a b",
    " a",
    "a\t",
    "a\n",
    "a\r\nDEL x",
    "\0",
    "a\u{7f}",
    "{a}",
    "a{b}c",
    "}",
    "a/b",
    "a|b",
    "a'",
    "a\"",
    "a;--",
    "a%00",
    "*",
    "?",
    "[a]",
    "$1",
    "\\",
    "(a)",
    "a,b",
    "a=b",
    "<a>",
    "\u{e9}",
    "e\u{301}",
    "\u{ff41}",
    "\u{202e}a",
    "\u{1f600}",
];

/// What a name may be, said in another way than the library says it.
fn is_legal(text: &str) -> bool {
    let legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    (1..=128).contains(&text.len()) && text.chars().all(|one| legal.contains(one))
}

proptest! {
    #[test]
    fn a_text_is_a_name_or_an_error_that_fits_in_a_line(
        text in prop_oneof![".{0,140}", "[A-Za-z0-9._:-]{0,140}", any::<String>()],
    ) {
        match Name::new(&text) {
            Ok(name) => {
                prop_assert!(is_legal(&text));
                prop_assert_eq!(name.as_str(), text);
            }
            Err(error) => {
                prop_assert!(!is_legal(&text));
                let told = error.to_string();
                prop_assert!(!told.contains(char::is_control), "{}", told);
            }
        }
    }
}

#[test]
fn the_list_is_sorted_rightly() {
    assert!(LEGAL.into_iter().all(is_legal));
    assert!(!REFUSED.into_iter().any(is_legal));
    assert!(is_legal(&"x".repeat(128)) && !is_legal(&"x".repeat(129)));
}

#[test]
fn a_ticket_with_another_name_is_none() {
    let locks = block_on(Leases::memory().connect()).unwrap();
    let ticket = block_on(locks.lease("right").acquire()).unwrap().detach();
    let written = serde_json::to_string(&ticket).unwrap();
    assert!(serde_json::from_str::<LeaseTicket>(&written).is_ok());
    for text in REFUSED {
        let text = serde_json::to_string(text).unwrap();
        let odd = written.replace("\"right\"", &text);
        assert!(serde_json::from_str::<LeaseTicket>(&odd).is_err(), "{odd}");
    }
}

#[test]
fn a_ticket_whose_safety_leaves_no_time_is_none() {
    let locks = block_on(Leases::memory().connect()).unwrap();
    let ticket = block_on(locks.lease("right").acquire()).unwrap().detach();
    let mut written = serde_json::to_value(&ticket).unwrap();
    written["safety_ms"] = written["ttl_ms"].clone();
    let error = serde_json::from_value::<LeaseTicket>(written).unwrap_err();
    assert!(error.to_string().contains("safety"), "{error}");
}

#[cfg(feature = "test-kit")]
#[tokio::test]
async fn names_that_are_none_reach_no_backend() {
    use soldonce_lease::AcquireError;
    use soldonce_lease::test_kit::Op;

    let world = crate::facade::World::start().await;
    let long = "x".repeat(129);
    for text in REFUSED.into_iter().chain([long.as_str()]) {
        let locks = &world.locks;
        for ask in [
            locks.lease(text),
            locks.group(text, ["a"]),
            locks.group("hall", [text]),
            locks.group("hall", ["a", text]),
        ] {
            let refused = ask.try_acquire().await;
            let invalid = matches!(refused, Err(AcquireError::Invalid(_)));
            assert!(invalid, "{text:?}: {refused:?}");
        }
    }
    for op in [Op::Acquire, Op::Renew, Op::Release] {
        assert_eq!(world.faulty.calls(op), 0, "{op:?}");
    }
}
