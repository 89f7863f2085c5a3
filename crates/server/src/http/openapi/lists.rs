//! What the lists of holds and bookings are for: a caller's own, and those of an event for staff.

use super::super::route::{Admission, Verb};
use super::operations::{Content, Operation, operation};

const OF_HOLDER: (&str, &str, &str) = (
    "holder",
    "Of this holder, whichever key or session named it",
    "string",
);
const HOLDER: (&str, &str, &str) = ("holder", "Whose; a session leaves it out", "string");
const FROM: (&str, &str, &str) = ("from", "Made then or later, RFC 3339", "string");
const UNTIL: (&str, &str, &str) = ("until", "Made before then, RFC 3339", "string");
const AFTER: (&str, &str, &str) = ("after", "The `next` of the page before", "string");
const LIMIT: (&str, &str, &str) = ("limit", "Most entries on the page, 1 to 100", "integer");

use Admission::{Buy, Staff};
use Content::Json;
use Verb::Get;

pub(super) const OPERATIONS: &[Operation] = &[
    operation(
        Get,
        "/v1/holds",
        Buy,
        "holds",
        (
            "list_holds",
            "The caller's live holds of one holder, newest first",
        ),
    )
    .query(&[HOLDER, AFTER])
    .answers(&[(200, "A page of holds", Json("HoldList"))]),
    operation(
        Get,
        "/v1/bookings",
        Buy,
        "bookings",
        (
            "list_bookings",
            "The caller's bookings of one holder, newest first",
        ),
    )
    .query(&[HOLDER, AFTER])
    .answers(&[(200, "A page of bookings", Json("BookingList"))]),
    operation(
        Get,
        "/v1/events/{event}/holds",
        Staff,
        "holds",
        (
            "list_holds_of_event",
            "Holds of an event, over or not, oldest first: what was there when the first page was asked \
             for is on exactly one page",
        ),
    )
    .query(&[
        (
            "state",
            "One or more of `active`, `pinned`, `consumed`, `released`, `expired`, `revoked`, with \
             commas between",
            "string",
        ),
        OF_HOLDER,
        FROM,
        UNTIL,
        AFTER,
        LIMIT,
    ])
    .answers(&[(200, "A page of holds, perhaps an empty one", Json("HoldList"))]),
    operation(
        Get,
        "/v1/events/{event}/bookings",
        Staff,
        "bookings",
        (
            "list_bookings_of_event",
            "Bookings of an event, oldest first: what was there when the first page was asked for is on \
             exactly one page",
        ),
    )
    .query(&[
        (
            "state",
            "One or more of `pending_payment`, `confirmed`, `partly_cancelled`, `cancelled`, `failed`, \
             `expired`, `needs_refund`, `refunded`, with commas between",
            "string",
        ),
        OF_HOLDER,
        ("reference", "With this reference", "string"),
        FROM,
        UNTIL,
        AFTER,
        LIMIT,
    ])
    .answers(&[(200, "A page of bookings, perhaps an empty one", Json("BookingList"))]),
];
