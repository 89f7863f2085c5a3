//! What Stripe charges: which currencies, and of each the least amount, the most, and the amounts that it has no
//! coins for. Least amounts are those of the currency an account settles in, so that another may have a
//! higher one.

use soldonce_core::{Amount, Currency};

/// Every currency of a payment (docs.stripe.com/currencies).
const CURRENCIES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB \
     BRL BSD BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP \
     GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD JOD JPY KES KGS KHR KMF KRW KWD KYD \
     KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR \
     NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SEK SGD SHP SLE SOS SRD STD \
     SZL THB TJS TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VND VUV WST XAF XCD XCG XOF XPF YER ZAR \
     ZMW";

/// Most of one payment, minor units, where nothing else is known: eight digits.
const MOST: i64 = 99_999_999;

/// Currencies of small money, which may have more digits; rather too many than too few.
const MOST_OF: [(&str, i64); 6] = [
    ("COP", 9_999_999_999),
    ("HUF", 9_999_999_999),
    ("IDR", 999_999_999_999),
    ("INR", 999_999_999),
    ("JPY", 9_999_999_999),
    ("LBP", 999_999_999_999),
];

/// Least of one payment, minor units, where Stripe has one.
const LEAST_OF: [(&str, i64); 24] = [
    ("AED", 200),
    ("AUD", 50),
    ("BGN", 100),
    ("BRL", 50),
    ("CAD", 50),
    ("CHF", 50),
    ("CZK", 1_500),
    ("DKK", 250),
    ("EUR", 50),
    ("GBP", 30),
    ("HKD", 400),
    ("HUF", 17_500),
    ("INR", 50),
    ("JPY", 50),
    ("MXN", 1_000),
    ("MYR", 200),
    ("NOK", 300),
    ("NZD", 50),
    ("PLN", 200),
    ("RON", 200),
    ("SEK", 300),
    ("SGD", 50),
    ("THB", 1_000),
    ("USD", 50),
];

/// Currencies without coins of their minor unit, though Stripe counts in it: multiples of this only.
const STEP_OF: [(&str, i64); 2] = [("ISK", 100), ("UGX", 100)];

/// Checks that Stripe charges a price.
///
/// # Errors
/// Says why it does not.
pub(super) fn require_chargeable(currency: Currency, price: Amount) -> Result<(), String> {
    let code = currency.as_str();
    let minor = price.minor();
    if !CURRENCIES.split_whitespace().any(|known| known == code) {
        return Err(format!("Stripe has no currency {code}"));
    }
    let of = |table: &[(&str, i64)]| {
        let found = table.iter().find(|(of, _)| *of == code);
        found.map(|(_, amount)| *amount)
    };
    let (least, most) = (of(&LEAST_OF).unwrap_or(1), of(&MOST_OF).unwrap_or(MOST));
    if !(least..=most).contains(&minor) {
        return Err(format!(
            "Stripe charges {least} ..= {most} minor units of {code} at once, and {minor} is outside"
        ));
    }
    require_step(currency, price)
}

/// Checks that an amount can be moved in this currency, back too.
///
/// # Errors
/// Says why it cannot.
pub(super) fn require_step(currency: Currency, amount: Amount) -> Result<(), String> {
    let (code, minor) = (currency.as_str(), amount.minor());
    let of_code = STEP_OF.iter().find(|(of, _)| *of == code);
    // The last of three digits must be none: card networks have two.
    let usual = if currency.digits() == 3 { 10 } else { 1 };
    let step = of_code.map_or(usual, |(_, step)| *step);
    if minor % step != 0 {
        return Err(format!(
            "Stripe moves multiples of {step} minor units of {code} only, not {minor}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_charged_or_it_is_said_why_not() {
        let is_charged = |price: &str| {
            let (code, minor) = price.split_once(' ').unwrap();
            let currency = Currency::parse(code).unwrap();
            let price = Amount::from_minor(minor.parse().unwrap());
            require_chargeable(currency, price).is_ok()
        };
        let charged = "EUR 50, USD 99999999, HUF 17501, KWD 1010, JPY 50, UGX 500, ISK 5000, \
            IDR 999999999999, XAF 1";
        for price in charged.split(", ") {
            assert!(is_charged(price), "{price}");
        }
        let refused = "EUR 10, EUR 49, USD 100000000, HUF 5000, KWD 1005, JPY 49, UGX 550, ISK 5001, \
            XQZ 5000";
        for price in refused.split(", ") {
            assert!(!is_charged(price), "{price}");
        }
    }

    #[test]
    fn minor_units_are_counted_as_they_are_charged() {
        let digits = |code| Currency::parse(code).unwrap().digits();
        for (codes, expected) in [("EUR HUF ISK TWD UGX", 2), ("JPY KRW", 0), ("KWD", 3)] {
            for code in codes.split(' ') {
                assert_eq!(digits(code), expected, "{code}");
            }
        }
    }
}
