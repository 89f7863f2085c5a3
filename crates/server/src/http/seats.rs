//! The seats of an event as they are, and its chart: what a seat map is drawn from.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use soldonce_core::{Chart, Event, Seq, StateKind};
use soldonce_engine::chart;
use soldonce_engine::live::{Digest, SeatSnapshot};

use super::api_request::ApiRequest;
use super::app::App;
use super::coding::{Coding, OpenBody};
use super::conditional::is_known;
use super::operation::{IF_NONE_MATCH, Tag, get};
use super::problem::{Handled, Problem};
use super::rendered::{BodyKey, Rendering};
use super::route::Admission::Look;
use super::shapes::{AreaCounts, Chart as ChartShape, Seats};
use super::table::Table;
use super::{answer, response};
use crate::limits::{CHART_MAX_AGE_S, SEATS_MAX_AGE_S};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Seats);
    table.add(
        get("/v1/events/{event}/chart", Look)
            .id("read_chart")
            .summary("The seat plan, which never changes")
            .headers(&[IF_NONE_MATCH])
            .gives_bare::<ChartShape>("The chart")
            .or_unchanged(),
        chart_of,
    );
    table.add(
        get("/v1/events/{event}/seats", Look)
            .id("read_seats")
            .summary("The seats as they are at one commit number")
            .headers(&[IF_NONE_MATCH])
            .gives::<Seats>(200, "The seats")
            .or_unchanged(),
        snapshot,
    );
}

async fn snapshot(req: ApiRequest) -> Handled {
    req.query()?;
    let app = &*req.app;
    let found = app.engine.event(&req.event_id()?).await?;
    let seq = found.snapshot.seq;
    let coding = Coding::accepted(&req.parts.headers);
    let tag = etag(&found.event, seq, found.snapshot.digest)?;
    if is_known(&req.parts.headers, &tag) {
        return Ok(unchanged(tag, briefly(app)?));
    }
    let wanted = BodyKey {
        event: found.event.id.clone(),
        coding,
    };
    let newest = async || {
        let newest = app.engine.event(&wanted.event).await?;
        let units = newest.event.chart.units();
        let write = move || Rendering {
            seq: newest.snapshot.seq,
            digest: newest.snapshot.digest,
            body: OpenBody::new(coding, write_snapshot(&newest.event, &newest.snapshot)),
        };
        Ok((units, write))
    };
    let rendering = app.snapshots.get(app.clock(), &wanted, seq, newest).await?;
    let mut tail = Vec::with_capacity(48);
    answer::close(app, &mut tail);
    let body = Body::new(Halves {
        second: rendering.body.end(&tail).into(),
        first: rendering.body.bytes,
    });
    let mut response = response::json(StatusCode::OK, body);
    let headers = response.headers_mut();
    coding.tell(headers);
    let tag = etag(&found.event, rendering.seq, rendering.digest)?;
    headers.insert(header::ETAG, tag);
    headers.insert(header::CACHE_CONTROL, briefly(app)?);
    Ok(response)
}

async fn chart_of(req: ApiRequest) -> Handled {
    req.query()?;
    let app = &*req.app;
    let event = app.engine.find_event(&req.event_id()?).await?;
    let tag = etag(&event, Seq(0), Digest::default())?;
    // A shared cache may keep what is public, and nothing else.
    let scope = if app.is_open() { "public" } else { "private" };
    let cache = format!("{scope}, max-age={CHART_MAX_AGE_S}, immutable");
    let cache = HeaderValue::try_from(cache).map_err(|error| Problem::internal(&error))?;
    if is_known(&req.parts.headers, &tag) {
        return Ok(unchanged(tag, cache));
    }
    let chart = Arc::clone(&event.chart);
    let coding = Coding::accepted(&req.parts.headers);
    let newest = async || {
        let write = move || Rendering {
            seq: Seq(0),
            digest: Digest::default(),
            body: OpenBody::whole(coding, &write_chart(&chart).into()),
        };
        Ok((event.chart.units(), write))
    };
    let wanted = BodyKey {
        event: event.id.clone(),
        coding,
    };
    let rendering = app.charts.get(app.clock(), &wanted, Seq(0), newest).await?;
    let mut response = response::json(StatusCode::OK, rendering.body.bytes);
    let headers = response.headers_mut();
    coding.tell(headers);
    headers.insert(header::ETAG, tag);
    headers.insert(header::CACHE_CONTROL, cache);
    Ok(response)
}

/// Says how long caches keep what changes with each commit: where reads need no key, long enough
/// for a shared one to answer a crowd.
pub(super) fn briefly(app: &App) -> Result<HeaderValue, Problem> {
    if !app.is_open() {
        return Ok(HeaderValue::from_static("private, no-cache"));
    }
    let cache = format!("public, max-age={SEATS_MAX_AGE_S}");
    HeaderValue::try_from(cache).map_err(|error| Problem::internal(&error))
}

/// Builds the version of an event's answer. Weak, because the server's time differs; and told apart
/// from an event that had this id in another ledger, and from a commit that had this number before a
/// copy of the ledger was put back.
fn etag(event: &Event, seq: Seq, digest: Digest) -> Result<HeaderValue, Problem> {
    let created_at = event.created_at.ms();
    let tag = format!("W/\"{}.{created_at}.{}.{digest}\"", event.id, seq.0);
    HeaderValue::try_from(tag).map_err(|error| Problem::internal(&error))
}

fn unchanged(tag: HeaderValue, cache: HeaderValue) -> Response {
    let fields = [(header::ETAG, tag), (header::CACHE_CONTROL, cache)];
    let mut response = (StatusCode::NOT_MODIFIED, fields).into_response();
    Coding::Identity.tell(response.headers_mut());
    response
}

fn write_chart(chart: &Chart) -> Vec<u8> {
    serde_json::to_vec(&chart::write(chart)).unwrap_or_default()
}

#[derive(Serialize)]
struct Head<'a> {
    event: &'a str,
    seq: u64,
    digest: String,
    total: u32,
    free: u32,
}

/// Writes an open object: the server's time is added to each answer.
fn write_snapshot(event: &Event, snapshot: &SeatSnapshot) -> Bytes {
    let head = Head {
        event: event.id.as_str(),
        seq: snapshot.seq.0,
        digest: snapshot.digest.to_string(),
        total: snapshot.total.total(),
        free: snapshot.total.free,
    };
    let mut body = soldonce_engine::reply::open_object(&head);
    let mut lists = [
        (StateKind::Held, Vec::new()),
        (StateKind::Sold, Vec::new()),
        (StateKind::Blocked, Vec::new()),
    ];
    for (unit, kind) in snapshot.seats() {
        if let Some((_, list)) = lists.iter_mut().find(|(listed, _)| *listed == kind) {
            push_id(list, &event.chart, unit);
        }
    }
    for (kind, list) in &lists {
        body.extend_from_slice(b",\"");
        body.extend_from_slice(kind.as_str().as_bytes());
        body.extend_from_slice(b"\":[");
        body.extend_from_slice(list);
        body.push(b']');
    }
    body.extend_from_slice(b",\"areas\":");
    let areas = event.chart.areas().iter().zip(&snapshot.areas);
    let areas: Vec<AreaCounts<'_>> = areas
        .map(|(area, tally)| AreaCounts {
            area: area.id.as_str(),
            capacity: area.capacity,
            free: tally.free,
            held: tally.held,
            sold: tally.sold,
            blocked: tally.blocked,
        })
        .collect();
    body.extend(serde_json::to_vec(&areas).unwrap_or_default());
    body.into()
}

/// Appends a seat's id. Ids have no character that JSON escapes.
fn push_id(list: &mut Vec<u8>, chart: &Chart, unit: soldonce_core::UnitNo) {
    if !list.is_empty() {
        list.push(b',');
    }
    list.push(b'"');
    if let soldonce_core::UnitName::Seat(id) = chart.unit_name(unit) {
        list.extend_from_slice(id.as_bytes());
    }
    list.push(b'"');
}

/// A body of two parts: a shared one and one's own.
struct Halves {
    first: Bytes,
    second: Bytes,
}

impl HttpBody for Halves {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = if self.first.is_empty() {
            std::mem::take(&mut self.second)
        } else {
            std::mem::take(&mut self.first)
        };
        Poll::Ready((!next.is_empty()).then(|| Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.first.len().saturating_add(self.second.len());
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
