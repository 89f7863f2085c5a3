//! Which ids are legal, and that each has one spelling.

use soldonce_core::{HoldId, Id};

#[test]
fn legal_ids_are_exactly_those_of_the_contract() {
    for text in ["a", "A-1", "hamlet-1", "x.y_z-0", &"a".repeat(64)] {
        assert_eq!(
            Id::parse(text).map(|id| id.as_str().to_owned()),
            Ok(text.to_owned())
        );
    }
    let long = "a".repeat(65);
    for text in [
        "",
        " ",
        "a b",
        "a\0",
        "é",
        "\u{212a}",
        "a/b",
        "{a}",
        "a\r\n",
        long.as_str(),
    ] {
        assert!(Id::parse(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn minted_ids_have_one_spelling() {
    let id = HoldId::from_bits(u128::MAX - 5);
    let text = id.to_string();
    assert_eq!(text.parse(), Ok(id));
    assert!(text.to_uppercase().parse::<HoldId>().is_err());
    assert!(text.replace("hld_", "bkg_").parse::<HoldId>().is_err());
    assert!(
        "hld_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<HoldId>().is_err(),
        "over 128 bits"
    );
    assert!("hld_".parse::<HoldId>().is_err());
}

#[test]
fn later_ids_sort_later_in_every_form() {
    let (a, b) = (HoldId::from_bits(7 << 80), HoldId::from_bits(8 << 80));
    assert!(a < b && a.to_string() < b.to_string() && a.bytes() < b.bytes());
}
