//! Calls that go wrong: what they did, and what was heard of it.

use std::time::Duration;

use fake_stripe::{CallFault, Plan, Route};

use super::client::{Rig, call, until};

fn capture(rig: &Rig, intent: &str, fault: CallFault) -> (Option<u16>, u32) {
    rig.stripe.next_call(Route::Capture, fault);
    let path = format!("/v1/payment_intents/{intent}/capture");
    let heard = rig.with_key(&path, "", &format!("{intent}.capture"));
    assert_eq!(rig.stripe.to_come(), 0);
    (heard.map(|heard| heard.status), rig.money(intent).captures)
}

#[test]
fn each_fault_does_what_it_says() {
    let rig = Rig::new();
    for (fault, status, captures) in [
        (CallFault::ErrorAfter, Some(500), 1),
        (CallFault::ErrorBefore, Some(500), 0),
        (CallFault::CloseAfter, None, 1),
        (CallFault::CloseBefore, None, 0),
        (CallFault::RateLimited, Some(429), 0),
        (CallFault::Garbage, Some(200), 1),
        (CallFault::Oversized, Some(200), 1),
    ] {
        let intent = rig.authorised_intent();
        assert_eq!(
            capture(&rig, &intent, fault),
            (status, captures),
            "{fault:?}"
        );
    }
}

#[test]
fn what_a_closed_connection_did_is_told_to_the_same_key() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    assert_eq!(capture(&rig, &intent, CallFault::CloseAfter), (None, 1));
    let path = format!("/v1/payment_intents/{intent}/capture");
    let again = rig
        .with_key(&path, "", &format!("{intent}.capture"))
        .unwrap();
    assert_eq!((again.status, again.text("/status")), (200, "succeeded"));
    assert_eq!(rig.money(&intent).captures, 1);
}

#[tokio::test]
async fn a_call_goes_on_when_its_caller_has_gone() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    rig.stripe.next_call(Route::Capture, CallFault::HoldCall);
    let path = format!("/v1/payment_intents/{intent}/capture");
    let (url, lines) = (rig.stripe.url(), rig.authorised(""));
    let address = url.trim_start_matches("http://").to_owned();
    let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{lines}\r\n");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    rig.stripe.until_held(1).await;
    drop(stream);
    assert_eq!(rig.shown(&intent).text("/status"), "requires_capture");
    rig.stripe.release();
    until("the effect", || rig.money(&intent).captures == 1);
}

#[tokio::test]
async fn a_held_reply_is_of_a_call_that_ran() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    rig.stripe.next_call(Route::Capture, CallFault::HoldReply);
    let path = format!("/v1/payment_intents/{intent}/capture");
    let (url, lines) = (rig.stripe.url(), rig.authorised(""));
    let caller = std::thread::spawn(move || call(&url, "POST", &path, ("", &lines)).unwrap());
    rig.stripe.until_held(1).await;
    assert_eq!(rig.money(&intent).captures, 1);
    rig.stripe.release();
    assert_eq!(caller.join().unwrap().status, 200);
}

#[tokio::test]
async fn a_slow_reply_waits_for_the_clock() {
    let rig = Rig::new();
    let slow = CallFault::Slow(Duration::from_secs(30));
    rig.stripe.next_call(Route::RetrieveIntent, slow);
    let intent = rig.authorised_intent();
    let path = format!("/v1/payment_intents/{intent}");
    let (url, lines) = (rig.stripe.url(), rig.authorised(""));
    let caller = std::thread::spawn(move || call(&url, "GET", &path, ("", &lines)).unwrap());
    // Whenever the call begins to wait, the clock goes on after that.
    while !caller.is_finished() {
        rig.clock.advance(Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
    assert_eq!(caller.join().unwrap().status, 200);
}

/// A hundred payments among faults of every kind: each key took effect at most once, and what was
/// asked for long enough came about.
#[test]
fn under_a_hostile_plan_each_key_works_once() {
    let rig = Rig::new();
    rig.stripe.plan(Plan::hostile(11));
    let asked = |path: &str, form: &str, key: &str| {
        // A stored 500 stays one: the next key asks anew.
        let mut keys = (0..40).map(|at| format!("{key}-{}", at / 4));
        keys.find_map(|key| {
            rig.with_key(path, form, &key)
                .filter(|heard| heard.status == 200)
        })
    };
    for at in 0..100 {
        let form =
            format!("amount=900&currency=eur&capture_method=manual&metadata%5Bbooking%5D=b{at}");
        let created = asked("/v1/payment_intents", &form, &format!("create-{at}")).unwrap();
        let intent = created.text("/id").to_owned();
        let path = |step| format!("/v1/payment_intents/{intent}/{step}");
        asked(
            &path("confirm"),
            "payment_method=pm_card_visa",
            &format!("pay-{at}"),
        );
        asked(&path("capture"), "", &format!("capture-{at}"));
        assert_eq!(rig.money(&intent).captures, 1, "{at}");
    }
    let statuses: Vec<_> = rig.stripe.calls().iter().map(|call| call.status).collect();
    for status in [None, Some(200), Some(429), Some(500)] {
        assert!(statuses.contains(&status), "{status:?} never happened");
    }
}
