//! The provider as the official SDKs find it, `tests/sdk`: they were written outside this project, so what
//! they misunderstand is wrong here.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fake_stripe::{CallFault, FakeStripe, Route};
use serde_json::json;
use soldonce_testkit::webhooks::Receiver;
use soldonce_testkit::{STRIPE_SDK, program, workspace};

use super::client::until;

/// Runs a script with a provider, an account of a platform and a signed notice on its standard input.
async fn judge(mut command: Command, script: &str) {
    let fake = FakeStripe::start().unwrap();
    let connected = FakeStripe::start().unwrap();
    connected.connect();
    for fault in [
        CallFault::RateLimitedFor(Duration::from_secs(7)),
        CallFault::ErrorBefore,
        CallFault::CloseBefore,
    ] {
        fake.next_call(Route::RetrieveRefund, fault);
    }
    fake.next_call(Route::Cancel, CallFault::HoldCall);
    let (notice, signature) = notice(&fake).await;
    let told = json!({
        "url": fake.url(),
        "key": fake.secret_key(),
        "publishable": fake.publishable_key(),
        "secret": fake.webhook_secret(),
        "notice": notice,
        "signature": signature,
        "connected": {
            "url": connected.url(),
            "key": connected.secret_key(),
            "account": connected.account(),
        },
    });
    let mut running = command
        .arg(workspace().unwrap().join(STRIPE_SDK).join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = running.stdin.take().unwrap();
    stdin.write_all(told.to_string().as_bytes()).unwrap();
    drop(stdin);
    let ended = std::thread::spawn(move || running.wait_with_output().unwrap());
    // The script cancels twice with one key; the first call is held until the other is refused.
    let is_refused = || fake.calls().iter().any(|call| call.status == Some(409));
    until("the call in conflict", || {
        is_refused() || ended.is_finished()
    });
    fake.release();
    let output = ended.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    assert_eq!(
        fake.to_come(),
        0,
        "the script made fewer calls than planned"
    );
}

/// A notice as it is posted: its body and its signature.
async fn notice(fake: &FakeStripe) -> (String, String) {
    let inbox = Receiver::start().unwrap();
    fake.deliver_to(&inbox.url()).unwrap();
    let lines = format!("Authorization: Bearer {}\r\n", fake.secret_key());
    let form = ("amount=900&currency=eur", lines.as_str());
    super::client::call(&fake.url(), "POST", "/v1/payment_intents", form).unwrap();
    fake.quiet().await;
    let received = inbox.received().swap_remove(0);
    (
        String::from_utf8(received.body).unwrap(),
        received.signature,
    )
}

#[tokio::test]
async fn the_sdk_for_python_finds_stripe() {
    let packages = program("openapi-python-client").unwrap();
    let mut command = Command::new(program("python3").unwrap());
    command.env("PYTHONPATH", packages.ancestors().nth(2).unwrap());
    judge(command, "python.py").await;
}

#[tokio::test]
async fn the_sdk_for_node_finds_stripe() {
    let modules = workspace().unwrap().join(STRIPE_SDK).join("node_modules");
    assert!(
        Path::is_dir(&modules),
        "./test installs {}",
        modules.display()
    );
    judge(Command::new(program("node").unwrap()), "node.mjs").await;
}
