//! The names that the API knows: the parameters of each call, currencies, releases. Any other is
//! refused, also one of Stripe that has no effect here: no test may rely on it.

use super::failure::Failure;
use super::form::Form;
use super::route::Route;

/// Currencies of a payment (docs.stripe.com/currencies).
const CURRENCIES: &str = "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob \
     brl bsd bwp byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp \
     gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd \
     kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr \
     nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std \
     szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar \
     zmw";

/// Names of API releases, oldest first. A version without one is older than [`super::API_VERSION`].
const RELEASES: [&str; 5] = ["acacia", "basil", "clover", "dahlia", "endive"];

/// Lists the parameters of a call. A name that ends with `[]` may have any text in its brackets.
const fn parameters(route: Route) -> &'static [&'static str] {
    match route {
        Route::CreateIntent => &[
            "amount",
            "automatic_payment_methods[allow_redirects]",
            "automatic_payment_methods[enabled]",
            "capture_method",
            "confirm",
            "currency",
            "description",
            "expand[]",
            "metadata[]",
            "payment_method",
            "payment_method_types[]",
            "return_url",
        ],
        Route::RetrieveIntent => &["client_secret", "expand[]"],
        Route::Confirm => &["client_secret", "expand[]", "payment_method", "return_url"],
        Route::Capture => &["amount_to_capture", "expand[]"],
        Route::Cancel => &["cancellation_reason", "expand[]"],
        Route::CreateRefund => &["amount", "expand[]", "metadata[]", "payment_intent"],
        Route::RetrieveRefund => &["expand[]"],
        Route::ListRefunds => &["expand[]", "limit", "payment_intent", "starting_after"],
        Route::ListEvents => &["limit", "starting_after", "type"],
        Route::Authenticate => &["client_secret", "ok"],
    }
}

/// Fails if a parameter of the call is unknown.
pub(super) fn require_parameters(route: Route, form: &Form) -> Result<(), Failure> {
    let is_known = |name: &str| {
        let inside = name.split_once('[').map(|(outer, _)| outer);
        let fits = |known: &&str| match known.strip_suffix("[]") {
            Some(outer) => inside == Some(outer),
            None => *known == name,
        };
        parameters(route).iter().any(fits)
    };
    match form.names().find(|name| !is_known(name)) {
        Some(name) => Err(Failure::unknown(name)),
        None => Ok(()),
    }
}

/// Fails if a version of the API is unknown. `None` passes: the account has a default version.
pub(super) fn require_version(version: Option<&str>) -> Result<(), Failure> {
    let is_known = |version: &str| {
        let digits = |byte: &u8| byte.is_ascii_digit();
        let (date, release) = version.split_once('.').unwrap_or_default();
        let parts: Vec<&[u8]> = date.as_bytes().split(|byte| *byte == b'-').collect();
        RELEASES.contains(&release)
            && parts.iter().map(|part| part.len()).eq([4, 2, 2])
            && parts.concat().iter().all(digits)
    };
    match version.filter(|version| !is_known(version)) {
        Some(version) => Err(Failure::version(version)),
        None => Ok(()),
    }
}

/// Tells whether `code`, in lower case, is a currency that can be paid in.
pub(super) fn is_currency(code: &str) -> bool {
    CURRENCIES.split_whitespace().any(|known| known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_a_date_and_the_name_of_a_release() {
        for version in [None, Some(crate::API_VERSION), Some("2026-10-28.endive")] {
            assert!(require_version(version).is_ok(), "{version:?}");
        }
        for version in [
            "",
            "2025-03-31",
            "2025-03-31.basel",
            "2025-3-31.basil",
            "2025-03-31.basil.1",
            "20250331xx.basil",
        ] {
            assert!(require_version(Some(version)).is_err(), "{version}");
        }
    }

    #[test]
    fn parameters_are_known_by_their_whole_name() {
        let passes =
            |route, text: &str| require_parameters(route, &Form::parse(text).unwrap()).is_ok();
        for text in ["metadata[a]=1&expand[]=x&expand[0]=y", "amount=1", ""] {
            assert!(passes(Route::CreateIntent, text), "{text}");
        }
        for text in [
            "metadata=1",
            "amount[]=1",
            "Amount=1",
            "amount=1&off_session=true",
        ] {
            assert!(!passes(Route::CreateIntent, text), "{text}");
        }
        assert!(!passes(Route::Capture, "amount=1"));
    }

    #[test]
    fn codes_of_testing_are_no_currencies() {
        assert!(is_currency("eur") && is_currency("zmw"));
        for code in ["EUR", "xqz", "xts", "eu", ""] {
            assert!(!is_currency(code), "{code}");
        }
    }
}
