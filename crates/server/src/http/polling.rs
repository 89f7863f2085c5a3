//! The same changes for readers that poll: an answer is the same for all that know as much, so that
//! a shared cache serves a crowd.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{StatusCode, header};
use soldonce_engine::EventSummary;
use soldonce_engine::live::Frame;

use super::api_request::ApiRequest;
use super::event_body::terms;
use super::frames::{Cut, FrameBody, json, json_reset};
use super::operation::{DIGEST, Tag, get};
use super::problem::Handled;
use super::response;
use super::route::Admission::Look;
use super::seats::briefly;
use super::table::Table;
use crate::limits::{FRAME_BYTES_MAX, POLLED_CHANGES_MAX};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Seats);
    table.add(
        get("/v1/events/{event}/frames", Look)
            .id("read_frames")
            .summary(
                "The changes of the seats since a commit, for readers that poll through a cache",
            )
            .query(&[
                (
                    "after",
                    "The `seq` that is known; else the frame is empty and tells the last one",
                    "integer",
                ),
                DIGEST,
            ])
            .gives_bare::<FrameBody<'_>>("All commits since, merged; or `reset`"),
        frames,
    );
}

async fn frames(req: ApiRequest) -> Handled {
    let known = req.query()?.commit()?;
    let app = &*req.app;
    let live = app.engine.live(&req.event_id()?).await?;
    let summary = EventSummary::of(&live);
    let (last, last_digest) = (summary.snapshot.seq, summary.snapshot.digest);
    let (after, digest) = known.unwrap_or((last, None));
    let is_ours = after <= last && digest.is_none_or(|digest| live.feed.has(after, digest));
    let kept = live.feed.between(after, last).filter(|_| is_ours);
    // A snapshot is written once for all; so many changes would be merged for this reader alone.
    let changes = |kept: &[Arc<Frame>]| kept.iter().map(|frame| frame.changes.len()).sum::<usize>();
    let kept = kept.filter(|kept| kept.len() <= 1 || changes(kept) <= POLLED_CHANGES_MAX);
    let nothing = || Frame {
        from: after.next(),
        seq: after,
        digest: last_digest,
        at: app.engine.now(),
        changes: Vec::new(),
    };
    let body = kept.map(|kept| {
        let frame = Frame::merge(&kept).unwrap_or_else(nothing);
        let terms = terms(&summary);
        json(&frame, Cut::Merged, &summary.event.chart, Some(terms))
    });
    let body = body.filter(|body| body.len() <= FRAME_BYTES_MAX);
    let body = body.unwrap_or_else(|| json_reset((last, last_digest), app.engine.now()));
    let mut response = response::json(StatusCode::OK, Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, briefly(app)?);
    Ok(response)
}
