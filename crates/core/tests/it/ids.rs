//! Which ids are legal, and that each has one spelling.

use soldonce_core::limits::TEXT_CHARS_MAX;
use soldonce_core::{Amount, Currency, HoldId, Id, Text};

#[test]
fn legal_ids_are_exactly_those_of_the_contract() {
    for text in ["a", "A-1", "hamlet-1", "x.y_z-0", &"a".repeat(64)] {
        assert_eq!(
            text.parse::<Id>().map(|id| id.as_str().to_owned()),
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

#[test]
fn a_text_has_so_many_characters_in_one_line() {
    let longest = "é".repeat(TEXT_CHARS_MAX);
    assert_eq!(Text::parse(&longest).unwrap().to_string(), longest);
    for wrong in [
        format!("{longest}é"),
        "a\nb".to_owned(),
        "\u{7f}".to_owned(),
    ] {
        let refused = Text::parse(&wrong).unwrap_err().to_string();
        assert!(refused.contains("at most 256 characters"), "{refused}");
    }
}

#[test]
fn debug_of_a_text_shows_where_it_ends() {
    let text = Text::parse("a\", \u{2028}b").unwrap();
    assert_eq!(format!("{text:?}"), r#""a\", \u{2028}b""#);
}

#[test]
fn a_currency_has_its_digits_behind_the_point() {
    for (code, digits) in [("EUR", 2), ("JPY", 0), ("KWD", 3), ("HUF", 2)] {
        let currency = Currency::parse(code).unwrap();
        assert_eq!((currency.as_str(), currency.digits()), (code, digits));
    }
    assert!(Amount::price(-1).is_none());
}
