//! Every setting of a policy, by the table of settings: what was acknowledged is what a server that was
//! killed and started again shows, on every ledger.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use soldonce_core::{POLICY_FIELDS, PolicyField, PolicyKind};

use super::{ask, create, database, logs};
use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server};
use crate::store::{Store, folder};

const EVENT: &str = "/v1/events/hamlet-1";

/// Values that no field has by default.
fn others(name: &str, kind: PolicyKind) -> Value {
    match kind {
        PolicyKind::Millis => json!(61_000),
        PolicyKind::Count | PolicyKind::CountOrNull => json!(7),
        PolicyKind::TimeOrNull => json!("2031-01-01T00:00:00.000Z"),
        PolicyKind::Deadline => json!("2032-01-01T00:00:00.000Z"),
        PolicyKind::Flag => json!(false),
        PolicyKind::Word(words) => {
            let last = words.last().unwrap_or_else(|| panic!("{name} has no word"));
            json!(last)
        }
    }
}

/// What takes a limit away, where there is one.
fn nothing(kind: PolicyKind) -> Option<Value> {
    match kind {
        PolicyKind::CountOrNull | PolicyKind::TimeOrNull | PolicyKind::Deadline => {
            Some(Value::Null)
        }
        PolicyKind::Millis | PolicyKind::Count | PolicyKind::Flag | PolicyKind::Word(_) => None,
    }
}

/// Values that no policy may have.
fn illegal(field: &PolicyField) -> Vec<Value> {
    let numbers = field.bounds.range().map(|(least, most)| {
        let mut wrong = vec![json!(most + 1), json!(-1), json!("7")];
        wrong.extend(least.checked_sub(1).map(Value::from));
        wrong
    });
    numbers.unwrap_or_else(|| vec![json!("soon"), json!(7)])
}

/// A value out of bounds is refused by its name and changes nothing.
fn refuse_what_is_illegal(server: &Server, expected: &Value) {
    for field in POLICY_FIELDS {
        for value in illegal(field) {
            let change = json!({"policy": {field.name: value}});
            let patched = Ask::new("PATCH", EVENT.to_owned(), Some(change));
            let heard = ask(&mut server.client("wrong"), &patched);
            assert_eq!(
                heard.status,
                400,
                "{} {value}: {}",
                field.name,
                heard.shown()
            );
            assert_eq!(heard.json()["code"], "invalid_request");
            assert!(heard.shown().contains(field.name), "{}", heard.shown());
        }
    }
    let heard = ask(&mut server.client("same"), &Ask::get(EVENT.to_owned()));
    assert_eq!(&heard.json()["policy"], expected, "after the refusals");
}

fn started(store: &Store, log: &Path) -> Server {
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(store.served());
    Server::run(command, log).unwrap()
}

fn survive(store: &Store, log: &Path) {
    let mut server = started(store, log);
    create(&mut server.client("made"));
    let set: Value = POLICY_FIELDS
        .iter()
        .map(|field| (field.name.to_owned(), others(field.name, field.kind)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let unset: Value = POLICY_FIELDS
        .iter()
        .filter_map(|field| Some((field.name.to_owned(), nothing(field.kind)?)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut expected = set.clone();
    for (change, when) in [(set, "set"), (unset, "unset")] {
        let fields = change.as_object().unwrap().clone();
        let body = json!({"policy": change});
        let patched = Ask::new("PATCH", EVENT.to_owned(), Some(body));
        let heard = ask(&mut server.client("patch"), &patched);
        assert_eq!(heard.status, 200, "{}", heard.shown());
        for (name, value) in fields {
            expected[name] = value;
        }
        assert_eq!(heard.json()["policy"], expected, "{when}, before");
        refuse_what_is_illegal(&server, &expected);
        server.kill();
        server = started(store, log);
        let heard = ask(&mut server.client("read"), &Ask::get(EVENT.to_owned()));
        assert_eq!(heard.json()["policy"], expected, "{when}, after a restart");
    }
}

#[test]
fn every_setting_survives_a_kill_in_a_folder() {
    let at: PathBuf = folder("settled");
    survive(&Store::Folder(at.join("data")), &at.join("server"));
    std::fs::remove_dir_all(&at).unwrap();
}

#[test]
fn every_setting_survives_a_kill_on_postgresql() {
    survive(&Store::Database(database()), &logs("settled").join("one"));
}
