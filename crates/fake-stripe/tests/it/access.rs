//! Who may call what.

use super::client::Rig;

const CREATE: &str = "amount=900&currency=eur&capture_method=manual";

#[test]
fn a_wrong_key_is_refused_everywhere() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    for lines in ["", "Authorization: Bearer sk_test_other\r\n"] {
        for (method, path) in [
            ("POST", "/v1/payment_intents".to_owned()),
            ("GET", format!("/v1/payment_intents/{intent}")),
            ("POST", format!("/v1/payment_intents/{intent}/capture")),
            ("POST", format!("/v1/payment_intents/{intent}/cancel")),
            ("POST", format!("/v1/payment_intents/{intent}/confirm")),
            ("POST", "/v1/refunds".to_owned()),
            ("GET", "/v1/events".to_owned()),
        ] {
            let heard = rig.try_call(method, &path, CREATE, lines).unwrap();
            assert_eq!(heard.status, 401, "{method} {path}");
            assert_eq!(heard.text("/error/type"), "invalid_request_error");
        }
    }
    assert_eq!(rig.stripe.intents().len(), 1);
    assert_eq!(rig.money(&intent).captures, 0);
}

#[test]
fn a_page_pays_with_its_client_secret_and_does_nothing_else() {
    let rig = Rig::new();
    let intent = rig.intent();
    let secret = rig.shown(&intent).text("/client_secret").to_owned();
    let key = rig.stripe.publishable_key();
    let lines = format!("Authorization: Bearer {key}\r\n");
    let path = |step: &str| format!("/v1/payment_intents/{intent}/{step}");
    let with = |secret: &str| format!("payment_method=pm_card_visa&client_secret={secret}");
    let call = |step, form: &str| rig.try_call("POST", &path(step), form, &lines).unwrap();
    assert_eq!(call("confirm", &with("pi_x_secret_y")).status, 401);
    assert_eq!(call("confirm", "payment_method=pm_card_visa").status, 401);
    assert_eq!(call("capture", &with(&secret)).status, 403);
    assert_eq!(call("cancel", &with(&secret)).status, 403);
    let paid = call("confirm", &with(&secret));
    assert_eq!(
        (paid.status, paid.text("/status")),
        (200, "requires_capture")
    );
}

#[test]
fn a_page_of_another_origin_may_ask() {
    let rig = Rig::new();
    let path = "/v1/payment_intents/pi_1/confirm";
    let asked = rig
        .try_call("OPTIONS", path, "", "Origin: http://127.0.0.1:1\r\n")
        .unwrap();
    assert_eq!(asked.status, 204);
    for line in [
        "access-control-allow-origin: *",
        "access-control-allow-headers: authorization, content-type",
    ] {
        assert!(asked.head.contains(line), "{}", asked.head);
    }
}

#[test]
fn an_unknown_route_or_thing_is_not_found() {
    let rig = Rig::new();
    assert_eq!(rig.call("GET", "/v1/customers", "").status, 404);
    assert_eq!(rig.call("DELETE", "/v1/payment_intents", "").status, 404);
    let missing = rig.call("GET", "/v1/payment_intents/pi_none", "");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.text("/error/code"), "resource_missing");
    assert_eq!(rig.call("GET", "/v1/refunds/re_none", "").status, 404);
}

#[test]
fn a_form_that_says_nothing_useful_is_refused() {
    let rig = Rig::new();
    for form in [
        "",
        "currency=eur",
        "amount=0&currency=eur",
        "amount=-5&currency=eur",
        "amount=1.5&currency=eur",
        "amount=900",
        "amount=900&currency=EUR",
        "amount=900&currency=euro",
        "amount=900&currency=xqz",
        "amount=900&currency=eur&capture_method=sometimes",
        "amount=900&currency=eur&confirm=perhaps",
        "amount=900&currency=eur&confirm=true",
        "amount=900&currency=eur&customer=cus_1",
        "amount=%zz",
    ] {
        let heard = rig.call("POST", "/v1/payment_intents", form);
        assert_eq!(heard.status, 400, "{form}");
    }
    assert!(rig.stripe.intents().is_empty());
}
