//! Fifty thousand notices that are forged, mutated, truncated, replayed or signed with another key:
//! none is accepted, and every true one is. The judge itself is shown to catch verifiers that are
//! wrong in one thing.

use std::collections::BTreeMap;

use fake_stripe::signature::{header, v1};
use serde_json::Value;
use soldonce_clock::{Entropy, SeededEntropy};
use soldonce_core::Timestamp;
use soldonce_engine::payment::stripe::{WebhookSecrets, verify};

const NOW_S: i64 = 1_767_225_600;
const CURRENT: &str = "whsec_current_0123456789";
const PREVIOUS: &str = "whsec_previous_0123456789";
const FOREIGN: &str = "whsec_foreign_0123456789";
const TOLERANCE_S: u64 = 300;

/// A notice as it arrives.
struct Case {
    kind: &'static str,
    body: Vec<u8>,
    header: String,
    is_true: bool,
}

/// How a true notice comes about, from its bytes.
const TRUE: [(&str, Make); 5] = [
    ("signed", |draw, body| signed(draw, body, &[CURRENT])),
    ("previous secret", |draw, body| {
        signed(draw, body, &[PREVIOUS])
    }),
    ("two signatures, ours first", |draw, body| {
        signed(draw, body, &[CURRENT, FOREIGN])
    }),
    ("two signatures, ours last", |draw, body| {
        signed(draw, body, &[FOREIGN, CURRENT])
    }),
    ("other fields", |draw, body| {
        let (body, header) = signed(draw, body, &[CURRENT]);
        (body, format!("v0={},{header},x=y", "0".repeat(64)))
    }),
];

/// How a false one does.
const FALSE: [(&str, Make); 14] = [
    ("foreign secret", |draw, body| {
        signed(draw, body, &[FOREIGN])
    }),
    ("two foreign secrets", |draw, body| {
        signed(draw, body, &[FOREIGN, "whsec_"])
    }),
    ("random signature", |draw, body| {
        let random: String = (0..64).map(|_| draw.hex()).collect();
        let header = format!("t={},v1={random}", draw.fresh());
        (body, header)
    }),
    ("flipped bit", |draw, body| {
        let (mut body, header) = signed(draw, body, &[CURRENT]);
        let at = draw.below(body.len());
        body[at] ^= 1 << draw.below(8);
        (body, header)
    }),
    ("more space", |draw, body| {
        let (mut body, header) = signed(draw, body, &[CURRENT]);
        body.insert(1, b' ');
        (body, header)
    }),
    ("more money", |draw, body| {
        let (body, header) = signed(draw, body, &[CURRENT]);
        let text = String::from_utf8(body).unwrap().replace("900", "9000");
        (text.into_bytes(), header)
    }),
    ("truncated body", |draw, body| {
        let (mut body, header) = signed(draw, body, &[CURRENT]);
        body.truncate(draw.below(body.len()));
        (body, header)
    }),
    ("truncated header", |draw, body| {
        let (body, mut header) = signed(draw, body, &[CURRENT]);
        header.truncate(draw.below(header.len()));
        (body, header)
    }),
    ("body of another", |draw, body| {
        let (_, header) = signed(draw, b"{}".to_vec(), &[CURRENT]);
        (body, header)
    }),
    ("replayed", |draw, body| {
        let second = NOW_S - draw.off_by_much();
        let header = header(&[CURRENT], second, &body);
        (body, header)
    }),
    ("from the future", |draw, body| {
        let second = NOW_S + draw.off_by_much();
        let header = header(&[CURRENT], second, &body);
        (body, header)
    }),
    ("old signature, new time", |draw, body| {
        let old = NOW_S - draw.off_by_much();
        let header = format!("t={},v1={}", draw.fresh(), v1(CURRENT, old, &body));
        (body, header)
    }),
    ("changed signature", |draw, body| {
        let (body, header) = signed(draw, body, &[CURRENT]);
        let at = header.len() - 1 - draw.below(64);
        let digit = char::from(header.as_bytes()[at]).to_digit(16).unwrap();
        let other = char::from_digit(digit ^ 1, 16).unwrap();
        (
            body,
            format!("{}{other}{}", &header[..at], &header[at + 1..]),
        )
    }),
    ("other version", |draw, body| {
        let (body, header) = signed(draw, body, &[CURRENT]);
        (body, header.replace("v1=", "v0="))
    }),
];

type Make = fn(&Draw, Vec<u8>) -> (Vec<u8>, String);

/// Random choices from a seed.
struct Draw(SeededEntropy);

impl Draw {
    fn below(&self, bound: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        let drawn = u64::from_le_bytes(bytes) % u64::try_from(bound).unwrap();
        usize::try_from(drawn).unwrap()
    }

    fn hex(&self) -> char {
        char::from_digit(u32::try_from(self.below(16)).unwrap(), 16).unwrap()
    }

    /// A second within the tolerance, its ends included.
    fn fresh(&self) -> i64 {
        NOW_S - 300 + i64::try_from(self.below(601)).unwrap()
    }

    /// Beyond the tolerance, often just so.
    fn off_by_much(&self) -> i64 {
        301 + i64::try_from([0, 300, self.below(1_000_000)][self.below(3)]).unwrap()
    }

    /// The bytes of a notice, with the odd spaces that a sender is free to use.
    fn body(&self, at: usize) -> Vec<u8> {
        let space = ["", " ", "\n  "][self.below(3)];
        let text = format!(
            "{{{space}\"id\":{space}\"evt_{at}\", \"type\": \"payment_intent.succeeded\",{space}\
             \"created\": {NOW_S}, \"livemode\": false, \"data\": {{\"object\": {{\
             \"object\": \"payment_intent\", \"id\": \"pi_{at}\", \"amount\": 900, \
             \"amount_received\": 900, \"currency\": \"eur\", \"status\": \"succeeded\", \
             \"metadata\": {{}}, \"client_secret\": null}}}}}}"
        );
        text.into_bytes()
    }
}

fn signed(draw: &Draw, body: Vec<u8>, secrets: &[&str]) -> (Vec<u8>, String) {
    let header = header(secrets, draw.fresh(), &body);
    (body, header)
}

/// So many notices of these kinds; true ones if `TRUE` has the kinds.
fn cases(kinds: &[(&'static str, Make)], count: usize) -> Vec<Case> {
    let draw = Draw(SeededEntropy::new(u64::try_from(count).unwrap()));
    let one = |at: usize| {
        let (kind, make) = kinds[at % kinds.len()];
        let (body, header) = make(&draw, draw.body(at));
        Case {
            kind,
            body,
            header,
            is_true: TRUE.iter().any(|(own, _)| *own == kind),
        }
    };
    (0..count).map(one).collect()
}

/// Which kinds a verifier judges wrongly, and how often.
fn misjudged(cases: &[Case], accepts: impl Fn(&Case) -> bool) -> BTreeMap<&'static str, usize> {
    let mut wrong = BTreeMap::new();
    for case in cases {
        if accepts(case) != case.is_true {
            *wrong.entry(case.kind).or_default() += 1;
        }
    }
    wrong
}

fn ours(case: &Case) -> bool {
    let secrets = WebhookSecrets::new(CURRENT, Some(PREVIOUS)).unwrap();
    let now = Timestamp::from_ms(NOW_S * 1_000);
    verify(&case.body, &case.header, &secrets, now).is_ok()
}

#[test]
fn of_fifty_thousand_false_notices_none_is_accepted() {
    let cases = cases(&FALSE, 50_000);
    assert_eq!(misjudged(&cases, ours), BTreeMap::new());
}

#[test]
fn every_true_notice_is_accepted() {
    let cases = cases(&TRUE, 10_000);
    assert_eq!(misjudged(&cases, ours), BTreeMap::new());
}

/// What a verifier may be wrong in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    NoTolerance,
    FirstSignatureOnly,
    NotTheRawBody,
    OneSecretOnly,
    AnyVersion,
}

/// A verifier by itself, with a bug.
fn with_bug(case: &Case, bug: Bug) -> bool {
    let mut second = None;
    let mut offered = Vec::new();
    for field in case.header.split(',') {
        match field.split_once('=') {
            Some(("t", value)) => second = value.parse::<i64>().ok(),
            Some(("v1", value)) => offered.push(value),
            Some(("v0", value)) if bug == Bug::AnyVersion => offered.push(value),
            _ => {}
        }
    }
    let Some(second) = second else { return false };
    if bug == Bug::FirstSignatureOnly {
        offered.truncate(1);
    }
    let body = match serde_json::from_slice::<Value>(&case.body) {
        Ok(read) if bug == Bug::NotTheRawBody => read.to_string().into_bytes(),
        Ok(_) => case.body.clone(),
        Err(_) => return false,
    };
    let secrets = if bug == Bug::OneSecretOnly {
        &[CURRENT][..]
    } else {
        &[CURRENT, PREVIOUS]
    };
    let is_signed = secrets.iter().any(|secret| {
        let expected = v1(secret, second, &body);
        offered.iter().any(|offered| *offered == expected)
    });
    let is_fresh = second.abs_diff(NOW_S) <= TOLERANCE_S;
    is_signed && (is_fresh || bug == Bug::NoTolerance)
}

#[test]
fn planted_bugs_are_caught_and_a_verifier_without_one_is_not() {
    let mut all = cases(&FALSE, 1_400);
    all.extend(cases(&TRUE, 500));
    let kinds = |bug| {
        let wrong = misjudged(&all, |case| with_bug(case, bug));
        wrong.into_keys().collect::<Vec<_>>()
    };
    assert!(kinds(Bug::None).is_empty());
    assert_eq!(kinds(Bug::NoTolerance), ["from the future", "replayed"]);
    assert_eq!(
        kinds(Bug::FirstSignatureOnly),
        ["two signatures, ours last"]
    );
    let not_raw = kinds(Bug::NotTheRawBody);
    assert!(
        TRUE.iter().all(|(kind, _)| not_raw.contains(kind)),
        "{not_raw:?}"
    );
    assert_eq!(kinds(Bug::OneSecretOnly), ["previous secret"]);
    assert_eq!(kinds(Bug::AnyVersion), ["other version"]);
}
