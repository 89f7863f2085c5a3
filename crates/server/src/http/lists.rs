//! Lists of holds and of bookings: of an event for staff, of one holder for the caller.

use std::str::FromStr;

use soldonce_core::{BookingState, HoldState, Text, Timestamp};
use soldonce_engine::{ListAsk, ListPage};

use super::answer::{self, PageEnd};
use super::asked::Asked;
use super::json::time_of;
use super::problem::{Handled, Problem};
use super::query::Query;

/// `GET /v1/events/{event}/holds`
pub(super) async fn holds(asked: Asked) -> Handled {
    let names = ["state", "holder", "from", "until", "after", "limit"];
    let ask = read(&asked.query(&names)?, &HoldState::WORDS)?;
    let page = asked.app.engine.holds_in(&asked.event_id()?, &ask).await?;
    Ok(listed(&asked, "holds", &page))
}

/// `GET /v1/events/{event}/bookings`
pub(super) async fn bookings(asked: Asked) -> Handled {
    let names = [
        "state",
        "holder",
        "reference",
        "from",
        "until",
        "after",
        "limit",
    ];
    let words = BookingState::ALL.map(BookingState::as_str);
    let ask = read(&asked.query(&names)?, &words)?;
    let event = asked.event_id()?;
    let page = asked.app.engine.bookings_in(&event, &ask).await?;
    Ok(listed(&asked, "bookings", &page))
}

/// `GET /v1/holds`
pub(super) async fn own_holds(asked: Asked) -> Handled {
    let query = asked.query(&["holder", "after"])?;
    let (holder, after) = (query.holder()?, after(&query)?);
    let call = asked.call()?;
    let page = asked.app.engine.holds_of(&call, holder, after).await?;
    Ok(listed(&asked, "holds", &page))
}

/// `GET /v1/bookings`
pub(super) async fn own_bookings(asked: Asked) -> Handled {
    let query = asked.query(&["holder", "after"])?;
    let (holder, after) = (query.holder()?, after(&query)?);
    let call = asked.call()?;
    let page = asked.app.engine.bookings_of(&call, holder, after).await?;
    Ok(listed(&asked, "bookings", &page))
}

fn listed<Id: ToString>(
    asked: &Asked,
    name: &str,
    page: &ListPage<Id>,
) -> axum::response::Response {
    let end = PageEnd {
        next: page.next.as_ref().map(ToString::to_string),
        seq: page.seq.map(|seq| seq.0),
    };
    answer::list(&asked.app, name, &page.found, &end)
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
