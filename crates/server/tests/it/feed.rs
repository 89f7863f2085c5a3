//! The feed: snapshot and frames are the state, without a gap, over reconnects; and it ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Response, StatusCode};
use futures_util::poll;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use soldonce_server::{Peer, StreamLimits};

use crate::harness::{Answer, TestApp, hall_with_floor, units};

/// An open stream.
struct Stream {
    body: Body,
    unread: Vec<u8>,
    /// What it was told of the event, oldest first.
    event: Vec<Value>,
}

/// A server-sent event.
#[derive(Debug, PartialEq)]
struct Sent {
    id: Option<u64>,
    event: Option<String>,
    data: Value,
}

impl Stream {
    async fn open(app: &TestApp, path: &str) -> Self {
        let response = app.get(path).start().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self::of(response)
    }

    fn of(response: Response<Body>) -> Self {
        Self {
            body: response.into_body(),
            unread: Vec::new(),
            event: Vec::new(),
        }
    }

    /// Opens it as a browser that reconnects does.
    async fn again(app: &TestApp, path: &str, last: &str) -> Self {
        let ask = app.get(path).header("last-event-id", last);
        Self::of(ask.start().await)
    }

    /// The next bytes; nothing at the end.
    async fn part(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?;
        Some(frame.unwrap().into_data().unwrap())
    }

    /// The next change of seats, comments left out; nothing at the end.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            let sent = self.next_sent().await?;
            if sent.event.as_deref() != Some("event") {
                return Some(sent);
            }
            self.event.push(sent.data);
        }
    }

    /// The next word about the event itself.
    async fn next_event(&mut self) -> Value {
        let sent = self.next_sent().await.unwrap();
        assert_eq!((sent.event.as_deref(), sent.id), (Some("event"), None));
        sent.data
    }

    async fn next_sent(&mut self) -> Option<Sent> {
        loop {
            let text = String::from_utf8(self.unread.clone()).unwrap();
            let Some((block, rest)) = text.split_once("\n\n") else {
                let part = self.part().await?;
                self.unread.extend_from_slice(&part);
                continue;
            };
            self.unread = rest.as_bytes().to_vec();
            if let Some(sent) = read(block) {
                return Some(sent);
            }
        }
    }
}

fn read(block: &str) -> Option<Sent> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ")?;
    Some(Sent {
        id: field("id: ").map(|id| id.split_once('.').unwrap().0.parse().unwrap()),
        event: field("event: ").map(str::to_owned),
        data: serde_json::from_str(data).unwrap(),
    })
}

/// Longer than a tick.
const TICK: Duration = Duration::from_millis(100);

/// What a page knows: snapshot and frames.
#[derive(Debug, PartialEq)]
struct Known {
    seq: u64,
    seats: BTreeMap<String, String>,
    areas: BTreeMap<String, Value>,
}

impl Known {
    fn of(snapshot: &Answer) -> Self {
        let snapshot = snapshot.json();
        let mut seats = BTreeMap::new();
        for state in ["held", "sold", "blocked"] {
            for seat in snapshot[state].as_array().unwrap() {
                seats.insert(seat.as_str().unwrap().to_owned(), state.to_owned());
            }
        }
        let areas = snapshot["areas"].as_array().unwrap().iter().map(|area| {
            let counts = json!([area["free"], area["held"], area["sold"], area["blocked"]]);
            (area["area"].as_str().unwrap().to_owned(), counts)
        });
        Self {
            seq: snapshot["seq"].as_u64().unwrap(),
            seats,
            areas: areas.collect(),
        }
    }

    /// Reads frames, a tick each, until this commit.
    async fn follow(&mut self, app: &TestApp, stream: &mut Stream, until: u64) {
        while self.seq < until {
            app.clock.advance(TICK);
            self.apply(&stream.next().await.unwrap());
        }
        assert_eq!(self.seq, until);
    }

    fn apply(&mut self, sent: &Sent) {
        assert_eq!(
            sent.data["from"],
            self.seq + 1,
            "the feed has a gap: {sent:?}"
        );
        assert_eq!(sent.data["seq"].as_u64(), sent.id);
        self.seq = sent.id.unwrap();
        for change in sent.data["changes"].as_array().unwrap() {
            if let Some(area) = change["area"].as_str() {
                let counts = json!([
                    change["free"],
                    change["held"],
                    change["sold"],
                    change["blocked"]
                ]);
                self.areas.insert(area.to_owned(), counts);
                continue;
            }
            for seat in change["seats"].as_array().unwrap().iter().flat_map(run) {
                match change["state"].as_str().unwrap() {
                    "free" => self.seats.remove(&seat),
                    state => self.seats.insert(seat, state.to_owned()),
                };
            }
        }
    }
}

/// The seats of a run of `hall`, whose rows are of ten.
fn run(run: &Value) -> Vec<String> {
    let number = |id: &Value| {
        let (row, seat) = id.as_str().unwrap().split_once('-').unwrap();
        u32::from(row.as_bytes()[0] - b'A') * 10 + seat.parse::<u32>().unwrap() - 1
    };
    let (first, last) = match run.as_array() {
        Some(ends) => (number(&ends[0]), number(&ends[1])),
        None => (number(run), number(run)),
    };
    let name = |seat: u32| {
        let row = char::from(b'A' + u8::try_from(seat / 10).unwrap());
        format!("{row}-{}", seat % 10 + 1)
    };
    (first..=last).map(name).collect()
}

#[tokio::test]
async fn snapshot_and_frames_are_the_state() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    let snapshot = async || {
        app.get("/v1/events/hall/seats")
            .send()
            .await
            .expect(StatusCode::OK)
    };
    let mut known = Known::of(&snapshot().await);
    let mut stream = Stream::open(&app, "/v1/events/hall/feed?after=0").await;
    let held = app.held("a", &["A-1"]).await;
    let body = json!({"holder": "b", "units": [{"area": "floor", "quantity": 2}, {"seat": "A-2"}]});
    let other = app.hold(&app.sell, &body).await;
    let other = crate::harness::Held::of(&other.expect(StatusCode::CREATED));
    app.booked(&held).await;
    app.delete(&other.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK);
    let block = json!({"units": units(&["A-2"]), "reason": "x"});
    let blocked = app
        .post("/v1/events/hall/block")
        .by(&app.admin)
        .json(&block)
        .send()
        .await;
    blocked.expect(StatusCode::OK);
    known.follow(&app, &mut stream, 5).await;
    assert_eq!(known, Known::of(&snapshot().await));
    let frame = json!({"from": 2, "seq": 2, "at": "2026-12-01T12:00:00.000Z", "changes": [
        {"state": "held", "seats": ["A-2"]},
        {"area": "floor", "free": 18, "held": 2, "sold": 0, "blocked": 0},
    ]});
    let mut again = Stream::open(&app, "/v1/events/hall/feed?after=1&each=true").await;
    let mut sent = again.next().await.unwrap().data;
    sent.as_object_mut().unwrap().remove("digest");
    assert_eq!(sent, frame);
    assert_eq!(again.next().await.unwrap().id, Some(3));
    for after in 0..5 {
        let mut merged = Stream::open(&app, &format!("/v1/events/hall/feed?after={after}")).await;
        let sent = merged.next().await.unwrap();
        assert_eq!((sent.id, &sent.data["from"]), (Some(5), &json!(after + 1)));
    }
}

#[tokio::test]
async fn an_expiry_reaches_the_feed() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("a", &["A-1"]).await;
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    app.clock.advance(Duration::from_mins(10));
    assert_eq!(app.engine.sweep().await, Ok(1));
    let sent = stream.next().await.unwrap();
    assert_eq!(
        sent.id,
        Some(2),
        "a stream without a number begins with what comes next"
    );
    assert_eq!(
        sent.data["changes"],
        json!([{"state": "free", "seats": ["A-1"]}])
    );
}

#[tokio::test]
async fn a_reader_that_comes_again_misses_nothing() {
    let app = TestApp::open().await.with_hall(3).await;
    let snapshot = async || app.get("/v1/events/hall/seats").send().await;
    let mut known = Known::of(&snapshot().await);
    let mut stream = Stream::open(&app, "/v1/events/hall/feed?after=0").await;
    for seat in ["A-1", "A-2"] {
        app.held("a", &[seat]).await;
    }
    known.follow(&app, &mut stream, 2).await;
    drop(stream);
    app.held("b", &["A-5"]).await;
    // A browser that reconnects sends what it heard last; the address is the old one.
    let mut again = Stream::again(&app, "/v1/events/hall/feed?after=0", "2").await;
    known.follow(&app, &mut again, 3).await;
    app.held("c", &["A-7"]).await;
    known.follow(&app, &mut again, 4).await;
    assert_eq!(known, Known::of(&snapshot().await));
}

#[tokio::test]
async fn a_number_that_is_gone_or_unknown_is_a_reset() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let extend = format!("{}/extend", held.path());
    for _ in 0..soldonce_engine::limits::FEED_COMMITS_MAX {
        app.clock.advance(Duration::from_millis(1));
        app.post(&extend)
            .by(&app.sell)
            .send()
            .await
            .expect(StatusCode::OK);
    }
    for after in ["0", "99999999"] {
        let mut stream = Stream::open(&app, &format!("/v1/events/hall/feed?after={after}")).await;
        let sent = stream.next().await.unwrap();
        let seq = soldonce_engine::limits::FEED_COMMITS_MAX + 1;
        assert_eq!(
            (sent.event.as_deref(), sent.data),
            (Some("reset"), json!({ "seq": seq }))
        );
        assert_eq!(
            stream.next().await,
            None,
            "the reader comes again after a new snapshot"
        );
    }
    for wrong in ["?after=x", "?after=-1", "?from=1", "?each=1", "?digest=1"] {
        let answer = app
            .get(&format!("/v1/events/hall/feed{wrong}"))
            .send()
            .await;
        answer.refused(400, "invalid_request");
    }
    for wrong in ["x", "1.x"] {
        let ask = app
            .get("/v1/events/hall/feed")
            .header("last-event-id", wrong);
        ask.send().await.refused(400, "invalid_request");
    }
}

/// The digest of a commit that the ledger lacks is that of one from before a copy was put back.
#[tokio::test]
async fn a_reader_that_knows_another_commit_of_the_same_number_is_reset() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("a", &["A-1"]).await;
    let seats = app.get("/v1/events/hall/seats").send().await;
    let own = seats.json()["digest"].as_str().unwrap().to_owned();
    let tag = seats.header("etag");
    assert!(tag.ends_with(&format!(".1.{own}\"")), "{tag}");
    app.held("b", &["A-2"]).await;
    let told = async |digest: &str| {
        let polled = format!("/v1/events/hall/frames?after=1&digest={digest}");
        let polled = app.get(&polled).send().await.json();
        let path = format!("/v1/events/hall/feed?after=1&digest={digest}");
        let mut asked = Stream::open(&app, &path).await;
        let id = format!("1.{digest}");
        let mut again = Stream::again(&app, "/v1/events/hall/feed?after=0", &id).await;
        let (asked, again) = (asked.next().await.unwrap(), again.next().await.unwrap());
        (polled["reset"].clone(), asked.event, again.event)
    };
    assert_eq!(told(&own).await, (Value::Null, None, None));
    let reset = Some("reset".to_owned());
    assert_eq!(told("00000000").await, (json!(true), reset.clone(), reset));
}

#[tokio::test]
async fn a_reader_that_does_not_read_gets_one_frame_or_a_reset() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let snapshot = app.get("/v1/events/hall/seats").send().await;
    let mut known = Known::of(&snapshot);
    let mut slow = Stream::open(&app, "/v1/events/hall/feed?after=1").await;
    let mut slower = Stream::open(&app, "/v1/events/hall/feed?after=1").await;
    slow.next_event().await;
    slower.next_event().await;
    let extend = async |times: usize| {
        for _ in 0..times {
            app.clock.advance(TICK);
            let asked = app.post(&format!("{}/extend", held.path())).by(&app.sell);
            asked.send().await.expect(StatusCode::OK);
            tokio::task::yield_now().await;
        }
        // The last ones may wait for their tick.
        app.clock.advance(TICK);
        tokio::task::yield_now().await;
    };
    extend(1_000).await;
    known.apply(&slow.next().await.unwrap());
    assert_eq!(known.seq, 1_001, "all that it missed is one frame");
    extend(soldonce_engine::limits::FEED_COMMITS_MAX).await;
    let sent = slower.next().await.unwrap();
    assert_eq!(sent.event.as_deref(), Some("reset"));
    assert_eq!(slower.next().await, None);
}

#[tokio::test]
async fn the_first_change_comes_at_once_and_more_within_a_tick_in_one_frame() {
    let app = TestApp::open().await.with_hall(3).await;
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    app.held("a", &["A-1"]).await;
    assert_eq!(
        stream.next().await.unwrap().id,
        Some(1),
        "no time has passed"
    );
    app.held("b", &["B-1", "B-2"]).await;
    let last = app.held("c", &["B-3"]).await;
    app.delete(&last.path()).by(&app.sell).send().await;
    app.held("d", &["B-10", "C-1"]).await;
    app.clock.advance(TICK);
    let sent = stream.next().await.unwrap();
    let changes = json!([
        {"state": "free", "seats": ["B-3"]},
        {"state": "held", "seats": [["B-1", "B-2"], ["B-10", "C-1"]]},
    ]);
    assert_eq!((sent.id, &sent.data["from"]), (Some(5), &json!(2)));
    assert_eq!(sent.data["changes"], changes);
}

#[tokio::test]
async fn frames_are_rarer_where_a_reader_waits_longer_for_its_turn() {
    let app = TestApp::open().await.with_hall(1).await;
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    let mut late = Stream::open(&app, "/v1/events/hall/feed").await;
    late.next_event().await;
    let mut turn = pin!(late.next());
    assert!(poll!(turn.as_mut()).is_pending());
    app.held("a", &["A-1"]).await;
    assert_eq!(stream.next().await.unwrap().id, Some(1));
    app.clock.advance(Duration::from_millis(80));
    assert_eq!(turn.await.unwrap().id, Some(1));
    app.held("b", &["A-2"]).await;
    // After 180 ms a tick has passed, but not three times what the reader waited.
    app.clock.advance(TICK);
    tokio::task::yield_now().await;
    app.held("c", &["A-3"]).await;
    app.clock.advance(Duration::from_millis(60));
    let sent = stream.next().await.unwrap();
    assert_eq!((&sent.data["from"], sent.id), (&json!(2), Some(3)));
}

/// Changes all seats of a hall in one tick, by twenty commands. A reader of each commit gets them in parts that are
/// small enough, and waits for no other tick meanwhile.
#[tokio::test]
async fn all_seats_of_a_hall_change_in_one_frame() {
    let app = TestApp::open().await;
    let body = json!({
        "id": "hall", "name": "Hall", "currency": "EUR", "prices": {"S": 1},
        "chart": {"format": "grid", "rows": 250, "seats_per_row": 200, "category": "S"},
    });
    app.create(&body).await.expect(StatusCode::CREATED);
    let chart = app.get("/v1/events/hall/chart").send().await.json();
    let rows = chart["zones"][0]["rows"].as_array().unwrap();
    let seats = rows.iter().flat_map(|row| row["seats"].as_array().unwrap());
    let seats: Vec<&str> = seats.map(|seat| seat["seat"].as_str().unwrap()).collect();
    assert_eq!(seats.len(), 50_000);
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    let mut each = Stream::open(&app, "/v1/events/hall/feed?each=true").await;
    app.held("a", &[seats[0]]).await;
    assert_eq!(stream.next().await.unwrap().id, Some(1));
    for half in seats[1..].chunks(2_500) {
        let block = json!({"units": units(half), "reason": "x"});
        let asked = app
            .post("/v1/events/hall/block")
            .by(&app.admin)
            .json(&block);
        asked.send().await.expect(StatusCode::OK);
    }
    app.clock.advance(TICK);
    let sent = stream.next().await.unwrap();
    let all = json!([{"state": "blocked", "seats": [[seats[1], seats[49_999]]]}]);
    assert_eq!((sent.id, &sent.data["changes"]), (Some(21), &all));
    for seq in 1..=21 {
        assert_eq!(each.next().await.unwrap().id, Some(seq));
    }
}

#[tokio::test]
async fn a_quiet_stream_shows_that_it_lives() {
    let app = TestApp::open().await.with_hall(1).await;
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    stream.next_event().await;
    let (part, ()) = tokio::join!(stream.part(), async {
        tokio::task::yield_now().await;
        app.clock.advance(Duration::from_secs(15));
    });
    assert_eq!(part.unwrap(), ": still here\n\n");
}

#[tokio::test]
async fn streams_end_at_shutdown() {
    let app = TestApp::open().await.with_hall(1).await;
    let mut waiting = Stream::open(&app, "/v1/events/hall/feed").await;
    let (end, ()) = tokio::join!(waiting.next(), async {
        tokio::task::yield_now().await;
        app.shutdown.cancel();
    });
    assert_eq!(end, None);
    let mut late = Stream::open(&app, "/v1/events/hall/feed").await;
    assert_eq!(late.next().await, None);
}

#[tokio::test]
async fn streams_of_one_address_are_bounded() {
    let streams = StreamLimits {
        total: 3,
        per_address: 2,
    };
    let app = TestApp::open_with(|settings| settings.streams = streams).await;
    let app = app.with_hall(1).await;
    let open = async |address: &str| {
        let peer: SocketAddr = format!("{address}:1").parse().unwrap();
        // What a client says of itself does not count.
        let ask = app.get("/v1/events/hall/feed").with(Peer(peer));
        ask.header("x-forwarded-for", "198.51.100.9").start().await
    };
    let first = open("192.0.2.1").await;
    let _second = open("192.0.2.1").await;
    let third = open("192.0.2.1").await;
    assert_eq!(third.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(third.headers()["retry-after"], "1");
    let _other = open("192.0.2.2").await;
    assert_eq!(
        open("192.0.2.3").await.status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    drop(first);
    assert_eq!(open("192.0.2.1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn one_change_is_written_once_for_all() {
    let app = TestApp::open().await.with_hall(1).await;
    let mut a = Stream::open(&app, "/v1/events/hall/feed").await;
    let mut b = Stream::open(&app, "/v1/events/hall/feed").await;
    a.next_event().await;
    b.next_event().await;
    app.held("a", &["A-1"]).await;
    // Other readers are served as well: one of them wants each commit.
    let mut each = Stream::open(&app, "/v1/events/hall/feed?after=0&each=true").await;
    let (a, b) = (a.part().await.unwrap(), b.part().await.unwrap());
    assert_eq!(a.as_ptr(), b.as_ptr(), "both readers share the same bytes");
    assert_eq!(each.next().await.unwrap().id, Some(1));
}

#[tokio::test]
async fn a_reader_is_told_of_the_event_at_once_and_when_its_terms_change() {
    let app = TestApp::open().await.with_hall(1).await;
    let shown = app.get("/v1/events/hall").send().await.json();
    let mut stream = Stream::open(&app, "/v1/events/hall/feed").await;
    let now = stream.next_event().await;
    assert_eq!(
        (&now["policy"], &now["state"]),
        (&shown["policy"], &json!("open"))
    );
    let change = async |path: &str, verb: Method, body: &Value| {
        let asked = app.ask(verb, path).by(&app.admin).json(body);
        asked.send().await.expect(StatusCode::OK);
    };
    let stop = json!({"policy": {"sale_closes_at": "2020-01-01T00:00:00.000Z"}});
    change("/v1/events/hall", Method::PATCH, &stop).await;
    let stopped = stream.next_event().await;
    assert_eq!(stopped["on_sale"], false);
    assert_eq!(
        stopped["policy"]["sale_closes_at"],
        "2020-01-01T00:00:00.000Z"
    );
    let renamed = json!({"name": "Hall II"});
    change("/v1/events/hall", Method::PATCH, &renamed).await;
    app.clock.advance(TICK);
    assert_eq!(stream.next_event().await["name"], "Hall II");
    let end = json!({"reason": "fog"});
    change("/v1/events/hall/cancel", Method::POST, &end).await;
    app.clock.advance(TICK);
    assert_eq!(stream.next_event().await["state"], "cancelled");
    // What changes nothing is no news.
    change("/v1/events/hall", Method::PATCH, &stop).await;
    app.shutdown.cancel();
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.event, Vec::<Value>::new());
}
