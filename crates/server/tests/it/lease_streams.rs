//! The states of a lease as a stream over both transports, and what is not known.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Memory, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeStream,
};
use soldonce_lease::{BackendError, Clock, Leases, Name};
use soldonce_server::{AdminRoutes, LeasePlace, LeaseSettings, ServerSettings};

use crate::harness::TestApp;

/// The next event of a stream: its type and its data.
async fn event(body: &mut Body) -> (String, Value) {
    loop {
        let part = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(part.to_vec()).unwrap();
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(kind), Some(data)) = (line("event: "), line("data: ")) {
            return (kind.to_owned(), serde_json::from_str(data).unwrap());
        }
    }
}

async fn ask(app: &TestApp, what: &str, body: &Value) -> Value {
    let path = format!("/v1/leases/job/{what}");
    let answer = app.post(&path).by(&app.lease).json(body).send().await;
    answer.expect(StatusCode::OK).json()
}

#[tokio::test]
async fn a_stream_tells_of_each_change() {
    let app = TestApp::open().await;
    let watch = app.get("/v1/leases/job/watch").by(&app.lease).start().await;
    assert_eq!(watch.headers()["content-type"], "text/event-stream");
    let mut body = watch.into_body();
    assert_eq!(event(&mut body).await, ("released".to_owned(), json!({})));
    let second = || async { app.clock.advance(Duration::from_secs(1)) };
    let acquire = json!({"owner": "a", "ttl_ms": 10_000});
    let first = ask(&app, "acquire", &acquire).await["token"].clone();
    let ((kind, data), ()) = tokio::join!(event(&mut body), second());
    assert_eq!((&*kind, &data["token"]), ("held", &first));
    ask(&app, "release", &json!({"owner": "a", "token": first})).await;
    let (said, ()) = tokio::join!(event(&mut body), second());
    assert_eq!(said, ("released".to_owned(), json!({"token": first})));
    let second_token = ask(&app, "acquire", &acquire).await["token"].clone();
    let ((kind, _), ()) = tokio::join!(event(&mut body), second());
    assert_eq!(kind, "held");
    let late = async { app.clock.advance(Duration::from_secs(11)) };
    let (said, ()) = tokio::join!(event(&mut body), late);
    assert_eq!(said, ("lost".to_owned(), json!({"token": second_token})));
    // A comment keeps a quiet stream open, and the end of the server ends it.
    let quiet = async { app.clock.advance(Duration::from_secs(16)) };
    let (part, ()) = tokio::join!(body.frame(), quiet);
    assert!(
        part.unwrap()
            .unwrap()
            .into_data()
            .unwrap()
            .starts_with(b":")
    );
    app.shutdown.cancel();
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn the_same_as_messages() {
    let app = TestApp::open().await;
    let by = format!("Bearer {}", app.lease);
    let by = [("authorization", &*by)];
    let watch = crate::grpc::start(&app, "Leases", "Watch", json!({"name": "job"}), &by).await;
    let mut watched = crate::grpc::Watched::new(watch, "WatchResponse");
    watched.next("released").await;
    let acquire = json!({"owner": "a", "ttl_ms": 10_000});
    let token = ask(&app, "acquire", &acquire).await["token"].clone();
    let second = async { app.clock.advance(Duration::from_secs(1)) };
    let (held, ()) = tokio::join!(watched.next("held"), second);
    assert_eq!(held["token"], token);
}

/// A backend that does what it is asked for and does not say so.
struct Silent(Memory);

fn unknown() -> BackendError {
    BackendError::Unknown("no answer".to_owned())
}

impl Backend for Silent {
    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async {
            drop(self.0.acquire(command).await);
            AcquireReply::Failed(unknown())
        })
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        let silence = batch.iter().map(|_| RenewReply::Failed(unknown()));
        let silence: Vec<_> = silence.collect();
        Box::pin(async { silence })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        self.0.release(batch)
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        self.0.inspect(group, name)
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        self.0.wake(names)
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        self.0.doctor()
    }
}

#[derive(Debug)]
struct InSilence;

impl LeasePlace for InSilence {
    fn connect(&self, clock: Arc<dyn Clock>) -> BoxFuture<'static, Result<Leases, String>> {
        let backend = Arc::new(Silent(Memory::new(Arc::clone(&clock))));
        Box::pin(async move {
            let locks = Leases::backend(backend).clock(clock).connect().await;
            Ok(locks.unwrap())
        })
    }
}

#[tokio::test]
async fn what_is_not_known_is_no_refusal() {
    let settings = ServerSettings {
        leases: LeaseSettings {
            place: Arc::new(InSilence),
            ..LeaseSettings::default()
        },
        ..ServerSettings::default()
    };
    let app = TestApp::start(settings, AdminRoutes::Public).await;
    let send = async |what: &str, body: Value| {
        let path = format!("/v1/leases/job/{what}");
        app.post(&path).by(&app.lease).json(&body).send().await
    };
    let acquire = send("acquire", json!({"owner": "a", "ttl_ms": 10_000})).await;
    let unknown = acquire.refused(503, "outcome_unknown");
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("same owner"), "{detail}");
    // It was granted, and is left alone: the owner asks again.
    let held = app.get("/v1/leases/job").by(&app.lease).send().await.json();
    assert_eq!(held["held"], true);
    let token = held["token"].clone();
    let renew = json!({"owner": "a", "token": token, "ttl_ms": 10_000});
    send("renew", renew).await.refused(503, "outcome_unknown");
    let released = send("release", json!({"owner": "a", "token": token})).await;
    assert_eq!(released.expect(StatusCode::OK).json()["released"], true);
}
