//! Spans that `serve` sends to a collector by OTLP, as the collector reads them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;

use fake_stripe::FakeStripe;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Field;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;
use soldonce_testkit::webhooks::Receiver;
use soldonce_testkit::{Authority, PATIENCE, Validity, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server, serving};
use crate::operate::sell_one;
use crate::program::said;
use crate::shop::{done, hall, hold};
use crate::store::folder;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// The spans that a collector has, each with the name of its service.
fn spans(collector: &Receiver) -> Vec<(String, Span)> {
    let mut spans = Vec::new();
    for request in collector.received() {
        assert_eq!(request.path, "/hooks/v1/traces");
        let sent = ExportTraceServiceRequest::decode(&*request.body).unwrap();
        for of in sent.resource_spans {
            let resource = of.resource.unwrap();
            let named = resource
                .attributes
                .iter()
                .find(|one| one.key == "service.name");
            let service = named.and_then(text).unwrap();
            let scopes = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.extend(scopes.map(|span| (service.clone(), span)));
        }
    }
    spans
}

fn text(field: &KeyValue) -> Option<String> {
    match field.value.as_ref()?.value.as_ref()? {
        Field::StringValue(text) => Some(text.clone()),
        Field::IntValue(number) => Some(number.to_string()),
        Field::BoolValue(_)
        | Field::DoubleValue(_)
        | Field::ArrayValue(_)
        | Field::KvlistValue(_)
        | Field::BytesValue(_)
        | Field::StringValueStrindex(_) => None,
    }
}

fn fields(span: &Span) -> BTreeMap<&str, String> {
    let fields = span.attributes.iter();
    fields
        .filter_map(|one| Some((&*one.key, text(one)?)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Asks for an event with this `traceparent`.
fn read_traced(server: &Server, trace: &str) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let request = format!(
        "GET /v1/events/hamlet-1 HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\
         authorization: Bearer crash-rig-admin-key\r\ntraceparent: {trace}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_request_is_a_span_of_its_callers_trace_and_its_commit_one_of_its_own() {
    let folder = folder("traces");
    let authority = Authority::new().unwrap();
    let roots = authority.write(&folder).unwrap();
    let certificate = authority.certify("localhost", Validity::Now).unwrap();
    let collector = Receiver::start_encrypted(&certificate).unwrap();
    let mut command = serving(&folder.join("data"));
    command.args(["--otlp-endpoint", &collector.url()]);
    command.args(["--shoppers", "open", "--free-sales=on"]);
    command.env("SSL_CERT_FILE", roots);
    command.env("SOLDONCE_LOG", "soldonce_server=debug");
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let server = Server::run(command, &folder.join("server")).unwrap();
    let mut ann = server.client("ann");
    sell_one(&mut ann);
    let session = done(&mut ann, &Ask::post("/v1/sessions", json!({})));
    let token = session["session"].as_str().unwrap().to_owned();
    let mut shopper = Client::new(server.address, token.leak(), "shopper");
    let seat = json!({"units": [{"seat": "A-2"}]});
    done(&mut shopper, &Ask::post("/v1/events/hamlet-1/holds", seat));
    // Its caller does not record its trace.
    let unrecorded = TRACE.replace('0', "1");
    read_traced(&server, &format!("00-{unrecorded}-b7ad6b7169203331-00"));
    read_traced(&server, &format!("00-{TRACE}-b7ad6b7169203331-01"));
    let is_last = |span: &Span| span.name == "GET /v1/events/{event}";
    until("the last span is exported", PATIENCE, || {
        spans(&collector).iter().any(|(_, span)| is_last(span))
    })
    .unwrap();
    assert!(server.stop().success());

    let log = std::fs::read_to_string(folder.join("server.log")).unwrap();
    let spans = spans(&collector);
    assert!(spans.iter().all(|(service, _)| service == "soldonce"));
    let named = |name: &str| -> Vec<&Span> {
        let all = spans.iter().map(|(_, span)| span);
        all.filter(|span| span.name == name).collect()
    };
    // One hold is of an API key, the other of a shopper, whose command runs in a task of its own.
    for (name, count, event, hold) in [
        ("POST /v1/events", 1, None, false),
        ("POST /v1/events/{event}/holds", 2, Some("hamlet-1"), false),
        ("POST /v1/holds/{hold}/confirm", 1, None, true),
    ] {
        let requests = named(name);
        assert_eq!(requests.len(), count, "{name}: {spans:#?}");
        for request in requests {
            assert_eq!(request.parent_span_id, [0; 0], "{name}");
            let fields = fields(request);
            let status = &fields["http.response.status_code"];
            assert!(status.starts_with("20"), "{fields:?}");
            let named_event = fields.get("soldonce.event").map(String::as_str);
            assert_eq!(named_event, event, "{fields:?}");
            assert_eq!(fields.contains_key("soldonce.hold"), hold, "{fields:?}");
            let of = |span: &&Span| span.parent_span_id == request.span_id;
            let commits: Vec<_> = named("ledger.transact").into_iter().filter(of).collect();
            assert_eq!(commits.len(), 1, "{name}: {spans:#?}");
            assert_eq!(commits[0].trace_id, request.trace_id, "{name}");
            let (id, trace) = (&fields["soldonce.request_id"], hex(&request.trace_id));
            let line = format!("request_id=\"{id}\" trace_id=\"{trace}\"");
            assert!(log.contains(&line), "{line}: {log}");
        }
    }
    let read = named("GET /v1/events/{event}");
    assert_eq!(read.len(), 1, "{spans:#?}");
    assert_eq!(hex(&read[0].trace_id), TRACE);
    assert_eq!(hex(&read[0].parent_span_id), "b7ad6b7169203331");
}

#[test]
fn a_step_at_the_provider_is_a_span_in_its_request_or_in_that_of_the_outbox() {
    let folder = folder("traces-money");
    let collector = Receiver::start().unwrap();
    let fake = FakeStripe::start().unwrap();
    let mut command = serving(&folder.join("data"));
    command.args(["--otlp-endpoint", &collector.url()]);
    command.args([
        "--stripe-key",
        fake.secret_key(),
        "--stripe-url",
        &fake.url(),
    ]);
    command.args(["--stripe-webhook-secret", fake.webhook_secret()]);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let server = Server::run(command, &folder.join("server")).unwrap();
    let mut client = server.client("ann");
    done(
        &mut client,
        &Ask::post("/v1/events", hall("hamlet-1", 10, 20)),
    );
    let held = done(&mut client, &hold("hamlet-1", "ann", "A-1"));
    let path = format!("/v1/holds/{}", held["id"].as_str().unwrap());
    let paid = done(
        &mut client,
        &Ask::post(&format!("{path}/checkout"), json!({})).keyed("pay"),
    );
    let booking = paid["id"].as_str().unwrap();
    done(
        &mut client,
        &Ask::post(&format!("{path}/abandon"), json!({})).keyed("give up"),
    );
    let parents = |name: &str| {
        let spans = spans(&collector);
        let parent = |of: &Span| {
            let found = spans
                .iter()
                .find(|(_, span)| span.span_id == of.parent_span_id);
            found.map(|(_, span)| (span.name.clone(), fields(span).remove("soldonce.booking")))
        };
        let named = spans.iter().filter(|(_, span)| span.name == name);
        named
            .filter_map(|(_, span)| parent(span))
            .collect::<Vec<_>>()
    };
    let checkout = ("POST /v1/holds/{hold}/checkout".to_owned(), None);
    let step = ("outbox.step".to_owned(), Some(booking.to_owned()));
    until("both are exported", PATIENCE, || {
        let parents = parents("stripe.request");
        parents.contains(&checkout) && parents.contains(&step)
    })
    .unwrap();
    assert!(server.stop().success());
}

/// They have 800 ms, which a busy machine may stand still: then the log tells.
#[test]
fn the_last_spans_are_sent_at_the_end_or_the_log_says_that_they_are_lost() {
    let folder = folder("traces-last");
    let collector = Receiver::start().unwrap();
    let mut command = serving(&folder.join("data"));
    command.args(["--otlp-endpoint", &collector.url()]);
    // By itself it would send them in an hour.
    command.env("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    let server = Server::run(command, &folder.join("server")).unwrap();
    sell_one(&mut server.client("ann"));
    assert_eq!(collector.received(), []);
    assert!(server.stop().success());
    let log = std::fs::read_to_string(folder.join("server.log")).unwrap();
    let is_lost = log.contains("the last spans were not sent");
    assert!(is_lost || !spans(&collector).is_empty(), "{log}");
}

/// A server sells and ends in time without its collector.
#[test]
fn a_collector_that_does_not_answer_delays_neither_a_sale_nor_the_end() {
    let folder = folder("traces-silent");
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut command = serving(&folder.join("data"));
    command.args(["--otlp-endpoint", &url]);
    let server = Server::run(command, &folder.join("server")).unwrap();
    sell_one(&mut server.client("ann"));
    assert!(server.stop().success());
    let log = std::fs::read_to_string(folder.join("server.log")).unwrap();
    assert!(log.contains("the last spans were not sent"), "{log}");
}

#[test]
fn an_address_that_is_none_of_a_collector_is_refused() {
    let mut command = Command::new(PROGRAM);
    command.args([
        "serve",
        "--print-settings",
        "--otlp-endpoint",
        "token:secret@collector:4318",
    ]);
    let (code, said) = said(&mut command);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("write http://HOST:4318") && !said.contains("secret"),
        "{said}"
    );
}
