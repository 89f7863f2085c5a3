//! The headers of rate limits, which every answer of a limited route has while its limit is on.

use serde_json::{Map, Value, json};

const RATE_LIMIT: &str = "RateLimit";
const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";
const RETRY_AFTER: &str = "Retry-After";

/// Name, meaning, an example.
const HEADERS: [(&str, &str, &str); 3] = [
    (
        RATE_LIMIT,
        "What is left: `r` requests at once; after `t` seconds all of them again, in a refusal the \
         next one. Of `held`, `share` and `checkouts` `r` is how much more may be held, and `t` when \
         the first hold ends. One entry for each limit that was looked at; left out while it is off",
        "\"commands\";r=119;t=1",
    ),
    (
        RATE_LIMIT_POLICY,
        "The limit: `q` requests in `w` seconds, or without `w` what may be held at once. Left out \
         while the limit is off",
        "\"commands\";q=120;w=60",
    ),
    (RETRY_AFTER, "Seconds until the next request is let in", "1"),
];

pub(super) fn headers() -> Value {
    let described = |(name, about, example): &(&str, &str, &str)| {
        let schema = json!({"type": "string"});
        let header = json!({"description": about, "schema": schema, "example": example});
        ((*name).to_owned(), header)
    };
    Value::Object(HEADERS.iter().map(described).collect())
}

/// Returns the headers of an answer that was let in.
pub(super) fn of_answer() -> Value {
    named(&[RATE_LIMIT, RATE_LIMIT_POLICY])
}

pub(super) fn of_refusal() -> Value {
    named(&[RATE_LIMIT, RATE_LIMIT_POLICY, RETRY_AFTER])
}

fn named(names: &[&str]) -> Value {
    let reference = |name: &&str| {
        let link = json!({"$ref": format!("#/components/headers/{name}")});
        ((*name).to_owned(), link)
    };
    Value::Object(names.iter().map(reference).collect::<Map<_, _>>())
}
