//! The storm of k6 over gRPC, run by Node with a stand-in for k6's modules: its calls are those of `proto/`, its counts
//! those of a storm.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use soldonce_testkit::{TempFolder, program};

use crate::grpc::start;
use crate::harness::TestApp;
use crate::over_grpc::call::Reply;

/// A folder in which the script finds what it imports.
fn modules(scripts: &Path) -> TempFolder {
    let folder = TempFolder::new().unwrap();
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6");
    let module = folder.path().join("node_modules/k6");
    std::fs::create_dir_all(&module).unwrap();
    let exports = json!({
        "name": "k6", "type": "module",
        "exports": {"./net/grpc": "./grpc.mjs", "./metrics": "./metrics.mjs"},
    });
    std::fs::write(module.join("package.json"), exports.to_string()).unwrap();
    let copy = |from: PathBuf, to: PathBuf| std::fs::copy(from, to).unwrap();
    copy(parts.join("grpc.mjs"), module.join("grpc.mjs"));
    copy(parts.join("metrics.mjs"), module.join("metrics.mjs"));
    copy(parts.join("run.mjs"), folder.path().join("run.mjs"));
    copy(
        scripts.join("storm-grpc.js"),
        folder.path().join("script.mjs"),
    );
    folder
}

/// Makes the calls that the script asks for until it says how it ended.
async fn answer(app: &TestApp, node: &mut Child) -> Value {
    let mut to = node.stdin.take().unwrap();
    let mut said = BufReader::new(node.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended early");
        let call: Value = serde_json::from_str(&line).unwrap();
        let Some(method) = call["method"].as_str() else {
            return call;
        };
        let (service, name) = method.split_once('/').unwrap();
        let service = service.strip_prefix("soldonce.v1.").unwrap();
        let by = call["metadata"]["authorization"].as_str().unwrap();
        let headers = [("authorization", by)];
        let started = start(app, service, name, call["message"].clone(), &headers).await;
        let code = Reply::of(started).await.code;
        writeln!(to, "{}", json!({"status": code, "error": null})).unwrap();
    }
}

#[tokio::test]
async fn the_storm_of_k6_has_a_winner_for_each_seat() {
    let app = TestApp::open().await;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/k6");
    let folder = modules(&scripts);
    let mut node = Command::new(program("node").unwrap())
        .arg("run.mjs")
        .current_dir(folder.path())
        .env("KEY", &app.admin)
        .env("SCRIPTS", &scripts)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = answer(&app, &mut node).await;
    assert!(node.wait().unwrap().success());
    let summary = &ended["summary"];
    assert_eq!(summary["winners"], 3);
    assert_eq!(
        summary["answers"],
        json!({"ok": 3, "taken": 17, "limited": 0, "other": 0})
    );
    let wanted = json!({"won": ["count==3"], "other": ["count==0"]});
    assert_eq!(ended["thresholds"], wanted);
}
