//! Receives webhooks: verifies the signature, and drops messages that were seen before.
//! `cargo run --example receive_webhook -- 127.0.0.1:4000 whsec_..`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Router, body::Bytes, routing::post};
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use soldonce_clock::{Clock, SystemClock};

struct Receiver {
    secret: Vec<u8>,
    seen: Mutex<BTreeSet<String>>, // keep ids in your database, with what you do for them
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let given = args.next().zip(args.next());
    let (address, text) = given.ok_or("usage: receive_webhook ADDRESS whsec_..")?;
    let secret = BASE64_STANDARD.decode(text.trim_start_matches("whsec_"))?;
    let seen = Mutex::default();
    let receiver = Arc::new(Receiver { secret, seen });
    let app = Router::new()
        .route("/hooks", post(hook))
        .with_state(receiver);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}/hooks", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn hook(State(to): State<Arc<Receiver>>, head: HeaderMap, body: Bytes) -> StatusCode {
    let Some(id) = verified(&to.secret, &head, &body) else {
        return StatusCode::UNAUTHORIZED;
    };
    let mut seen = to.seen.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.insert(id) {
        println!("{}", String::from_utf8_lossy(&body));
    }
    StatusCode::NO_CONTENT // anything but 2xx is delivered again
}

/// Returns the id of a message that was signed with the secret in the last five minutes.
fn verified(secret: &[u8], head: &HeaderMap, body: &[u8]) -> Option<String> {
    let header = |name| head.get(name)?.to_str().ok();
    let (id, at) = (header("webhook-id")?, header("webhook-timestamp")?);
    let age = SystemClock.wall_ms() / 1_000 - at.parse::<i64>().ok()?;
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret).ok()?;
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(body);
    let is_right = |signature: &str| {
        let sum = BASE64_STANDARD.decode(signature.trim_start_matches("v1,"));
        sum.is_ok_and(|sum| mac.clone().verify_slice(&sum).is_ok())
    };
    let mut signatures = header("webhook-signature")?.split(' ');
    (age.abs() <= 300 && signatures.any(is_right)).then(|| id.to_owned())
}
