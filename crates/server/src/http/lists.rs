//! Lists of holds and of bookings: of an event for staff, of one holder for the caller.

use std::str::FromStr;

use soldonce_core::{BookingState, HoldState, Text, Timestamp};
use soldonce_engine::ListAsk;

use super::answer;
use super::api_request::ApiRequest;
use super::json::time_of;
use super::operation::{AFTER, LIMIT, Tag, get};
use super::problem::{Handled, Problem};
use super::query::Query;
use super::route::Admission::{Buy, Staff};
use super::route::Parameter;
use super::shapes::{BookingList, HoldList};
use super::table::Table;

const HOLDER: Parameter = ("holder", "Whose; a session leaves it out", "string");
const OF_HOLDER: Parameter = (
    "holder",
    "Of this holder, whichever key or session named it",
    "string",
);
const STATES: Parameter = (
    "state",
    "In one of these states, with commas between",
    "string",
);
const REFERENCE: Parameter = ("reference", "With this reference", "string");
const FROM: Parameter = ("from", "Made then or later, RFC 3339", "string");
const UNTIL: Parameter = ("until", "Made before then, RFC 3339", "string");

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Holds);
    table.add(
        get("/v1/holds", Buy)
            .id("list_holds")
            .summary("The caller's live holds of one holder, newest first")
            .query(&[HOLDER, AFTER])
            .gives::<HoldList>(200, "A page of holds"),
        own_holds,
    );
    table.tag(Tag::Bookings);
    table.add(
        get("/v1/bookings", Buy)
            .id("list_bookings")
            .summary("The caller's bookings of one holder, newest first")
            .query(&[HOLDER, AFTER])
            .gives::<BookingList>(200, "A page of bookings"),
        own_bookings,
    );
    table.tag(Tag::Holds);
    table.add(
        get("/v1/events/{event}/holds", Staff)
            .id("list_holds_of_event")
            .summary(
                "Holds of an event, over or not, oldest first: what was there when the first \
                 page was asked for is on exactly one page",
            )
            .query(&[STATES, OF_HOLDER, FROM, UNTIL, AFTER, LIMIT])
            .gives::<HoldList>(200, "A page of holds, perhaps an empty one"),
        holds,
    );
    table.tag(Tag::Bookings);
    table.add(
        get("/v1/events/{event}/bookings", Staff)
            .id("list_bookings_of_event")
            .summary(
                "Bookings of an event, oldest first: what was there when the first page was \
                 asked for is on exactly one page",
            )
            .query(&[STATES, OF_HOLDER, REFERENCE, FROM, UNTIL, AFTER, LIMIT])
            .gives::<BookingList>(200, "A page of bookings, perhaps an empty one"),
        bookings,
    );
}

async fn holds(req: ApiRequest) -> Handled {
    let ask = read(&req.query()?, &HoldState::WORDS)?;
    let page = req.app.engine.holds_in(&req.event_id()?, &ask).await?;
    Ok(answer::list(&req.app, "holds", &page))
}

async fn bookings(req: ApiRequest) -> Handled {
    let ask = read(&req.query()?, &BookingState::WORDS)?;
    let page = req.app.engine.bookings_in(&req.event_id()?, &ask).await?;
    Ok(answer::list(&req.app, "bookings", &page))
}

async fn own_holds(req: ApiRequest) -> Handled {
    let query = req.query()?;
    let (holder, after) = (query.holder()?, after(&query)?);
    let call = req.call()?;
    let page = req.app.engine.holds_of(&call, holder, after).await?;
    Ok(answer::list(&req.app, "holds", &page))
}

async fn own_bookings(req: ApiRequest) -> Handled {
    let query = req.query()?;
    let (holder, after) = (query.holder()?, after(&query)?);
    let call = req.call()?;
    let page = req.app.engine.bookings_of(&call, holder, after).await?;
    Ok(answer::list(&req.app, "bookings", &page))
}

fn read<Id: FromStr>(query: &Query<'_>, states: &[&str]) -> Result<ListAsk<Id>, Problem> {
    let given = query.get("state").into_iter();
    let given = given.flat_map(|text| text.split(','));
    let state = |word: &str| {
        let known = || Problem::invalid("state", format!("there are `{}`", states.join("`, `")));
        let found = states.contains(&word).then(|| word.to_owned());
        found.ok_or_else(known)
    };
    let reference = query.get("reference").map(Text::parse).transpose();
    let reference = reference.map_err(|error| Problem::invalid("reference", error))?;
    Ok(ListAsk {
        states: given.map(state).collect::<Result<_, _>>()?,
        holder: query.holder()?,
        reference: reference.map(|text| text.as_str().to_owned()),
        from: time(query, "from")?,
        until: time(query, "until")?,
        after: after(query)?,
        limit: query.limit()?,
    })
}

fn after<Id: FromStr>(query: &Query<'_>) -> Result<Option<Id>, Problem> {
    let given = query.get("after").map(Id::from_str).transpose();
    given.map_err(|_| Problem::invalid("after", "send `next` of the page before"))
}

fn time(query: &Query<'_>, name: &'static str) -> Result<Option<Timestamp>, Problem> {
    let rule = "write a time of RFC 3339, such as 2026-12-01T19:30:00.000Z";
    let given = query.get(name).map(time_of);
    given
        .map(|time| time.ok_or_else(|| Problem::invalid(name, rule)))
        .transpose()
}
