//! Schemathesis, a judge of API descriptions that was written outside this project, asks a running server
//! what `openapi.json` says may be asked, and what it says may not: in each role, in every phase.

use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::program;

use crate::crash::client::{Ask, Client};
use crate::crash::server::{ADMIN_KEY, Server, serving, verify};
use crate::shop::{done, hall};
use crate::store::folder;

const EVENT: &str = "hall";
/// Requests of the fuzzing phase for each operation; the other phases make as many as they need.
const EXAMPLES: &str = "20";
const OFF: [&str; 9] = [
    "--limit-sessions=off",
    "--limit-commands=off",
    "--limit-address=off",
    "--limit-held=off",
    "--limit-share=off",
    "--limit-checkouts=off",
    "--limit-lapses=off",
    "--limit-reads=off",
    "--limit-keys=off",
];
const REFUSED: &str = "ST202 Schema-valid request rejected";

/// The heading of findings in a sequence of operations, which names none of them.
const STEPS: &str = "Stateful tests";

/// A finding that stays: what is found, in which operation (`*`: any), by which words of the answer.
struct Known {
    found: &'static str,
    operation: &'static str,
    says: &'static str,
}

const fn refused(operation: &'static str, says: &'static str) -> Known {
    Known {
        found: REFUSED,
        operation,
        says,
    }
}

/// What a description of requests one by one cannot say.
const KNOWN: &[Known] = &[
    // Keys must name a holder, sessions must not: one operation has one description for both.
    refused("*", "holder: name the holder: your own id for the shopper"),
    refused(
        "*",
        "holder: a session holds for itself; leave `holder` out",
    ),
    // The parts of a request must fit each other, or what the event has.
    refused("POST /v1/events", "prices: category"),
    refused("PATCH /v1/events/{event}", "policy.hold_ttl_ms:"),
    refused("PATCH /v1/events/{event}", "policy.sale_opens_at:"),
    refused("PATCH /v1/events/{event}", "policy.sale_closes_at:"),
    refused("POST /v1/events", "policy.hold_ttl_ms:"),
    refused("POST /v1/holds/{hold}/extend", "ttl_ms:"),
    refused("POST /v1/leases/{name}/acquire", "cap_ms:"),
    refused(
        "*",
        "name either a `seat`, or an `area` and a `quantity` of at least 1",
    ),
    // This server has no provider.
    refused(
        "POST /v1/holds/{hold}/checkout",
        "checkout: no payment provider is set here",
    ),
    // Whether an address is of the internet is told by its number, not by its letters.
    refused(
        "POST /v1/webhook-endpoints",
        "url: must be out in the internet",
    ),
    // The judge makes more of them than there may be.
    refused(
        "POST /v1/webhook-endpoints",
        "url: there are 16 endpoints already: delete one",
    ),
    // The judge sends one key with two bodies.
    refused("*", "\"code\":\"idempotency_key_reused\""),
];

/// What is found wrong, without what is known.
fn surprises(report: &str) -> Vec<String> {
    let mut operation = "";
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in report
        .lines()
        .skip_while(|line| !line.contains(" FAILURES "))
    {
        if line.contains(" WARNINGS ") || line.contains(" SUMMARY ") {
            break;
        }
        let heading = line.trim_matches('_').trim();
        if line.starts_with("___") {
            operation = heading;
        } else if line.contains("Test Case ID:") {
            found.push((operation, String::new()));
        }
        if let Some((_, text)) = found.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let is_new = |(operation, text): &(&str, String)| {
        let codes: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("- "))
            .collect();
        let explains = |known: &Known| {
            (["*", *operation].contains(&known.operation) || *operation == STEPS)
                && codes == [known.found]
                && text.contains(known.says)
        };
        !KNOWN.iter().any(explains)
    };
    let new = found.into_iter().filter(is_new);
    new.map(|(operation, text)| format!("{operation}\n{text}"))
        .collect()
}

/// Runs the judge with these headers against a server of its own.
fn judge(role: &str, credential: impl Fn(&mut Client) -> Option<String>) {
    let folder = folder(&format!("schema-{role}"));
    let data = folder.join("data");
    let mut command = serving(&data);
    command
        .args(["--shoppers", "open", "--free-sales=on"])
        .args(OFF);
    let server = Server::run(command, &data).unwrap();
    let mut client = server.client(role);
    asked(&mut client, "/v1/events", hall(EVENT, 30, 30));
    let credential = credential(&mut client);

    let settings = folder.join("schemathesis.toml");
    std::fs::write(
        &settings,
        // A feed does not end: its first event is enough, in place of all that come in ten seconds.
        format!("max-stream-events = 1\n[parameters]\n\"path.event\" = \"{EVENT}\"\n"),
    )
    .unwrap();
    let script = program("schemathesis").unwrap();
    let packages = script.ancestors().nth(2).unwrap();
    let output = Command::new(program("python3").unwrap())
        .arg(&script)
        .arg("--config-file")
        .arg(settings)
        .args(["run", &format!("http://{}/openapi.json", server.address)])
        // It revokes the key that it is judged with.
        .args(["--exclude-operation-id", "revoke_key"])
        .args([
            "--phases",
            "examples,coverage,fuzzing,stateful",
            "--max-examples",
            EXAMPLES,
        ])
        .args([
            "--generation-deterministic",
            "--no-shrink",
            "--continue-on-failure",
        ])
        .args(["--output-truncate", "false", "--no-color"])
        .args(credential.map(|token| format!("--header=Authorization: Bearer {token}")))
        .current_dir(&folder)
        .env("PYTHONPATH", packages)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("Test cases:"), "{report}{error}");
    let surprises = surprises(&report);
    assert!(
        output.status.success() || report.contains(" FAILURES "),
        "{report}{error}"
    );
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    assert!(server.stop().success());
    verify(&data).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

fn asked(client: &mut Client, path: &str, body: Value) -> Value {
    done(client, &Ask::post(path, body).keyed(path))
}

fn member(answer: &Value, name: &str) -> Option<String> {
    Some(answer.get(name)?.as_str()?.to_owned())
}

#[test]
fn an_admin_finds_the_api_as_described() {
    judge("admin", |_| Some(ADMIN_KEY.to_owned()));
}

#[test]
fn a_seller_finds_the_api_as_described() {
    judge("seller", |client| {
        let key = json!({"name": "seller", "scopes": ["sell", "read"]});
        member(&asked(client, "/v1/keys", key), "key")
    });
}

#[test]
fn a_session_finds_the_api_as_described() {
    judge("session", |client| {
        member(&asked(client, "/v1/sessions", json!({})), "session")
    });
}

#[test]
fn a_stranger_finds_the_api_as_described() {
    judge("stranger", |_| None);
}

#[test]
fn a_finding_is_known_by_what_it_is_and_where() {
    let finding = |operation: &str, codes: &str, says: &str| {
        format!(
            "== FAILURES ==\n____ {operation} ____\n1. Test Case ID: x\n\n{codes}\n\n`{says}`\n== SUMMARY ==\n"
        )
    };
    let known = format!("- {REFUSED}");
    let url = "url: must be out in the internet: this address is private";
    let endpoints = "POST /v1/webhook-endpoints";
    let more = format!("{known}\n- ST101 Server error");
    assert!(surprises(&finding(endpoints, &known, url)).is_empty());
    for (operation, codes, says) in [
        ("POST /v1/keys", known.as_str(), url),
        (endpoints, "- ST201 Schema-violating request accepted", url),
        (endpoints, more.as_str(), url),
        (endpoints, known.as_str(), "url: too long"),
    ] {
        assert_eq!(
            surprises(&finding(operation, codes, says)).len(),
            1,
            "{operation} {codes}"
        );
    }
}
