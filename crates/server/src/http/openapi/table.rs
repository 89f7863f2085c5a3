//! What every route is for: one entry per line of the route table.

use super::super::kinds;
use super::super::route::{Admission, BodySize, METRICS, Verb};
use super::operations::{Content, Keyed, Operation, operation};
use super::refusals::{LEDGER, NO_CHOICE, NO_HOLD, NO_PAYMENT, NO_RETURN, NO_SALE};

const SECRET: (&str, &str) = (
    "Hold-Secret",
    "Proves that the hold is the caller's own; not needed by the caller that made it",
);
const BOOKING_SECRET: (&str, &str) = (
    "Booking-Secret",
    "Opens the booking for anybody who has it: the `secret` of an answer that was about it alone",
);
const KNOWN: (&str, &str) = ("If-None-Match", "The `ETag` of the answer that is known");
const AN_EVENT: &[(u16, &str, Content)] = &[(200, "The event", Content::Json("Event"))];
const A_HOLD: &[(u16, &str, Content)] = &[(200, "The hold", Content::Json("Hold"))];
const A_PAGE: &[(u16, &str, Content)] = &[
    (200, "The page", Content::Media("text/html")),
    (304, "Nothing new", Content::Nothing),
];

use Admission::{Admin, Anyone, Buy, Look, NewShopper, Sell};
use Content::{Json, Media, Nothing};
use Verb::{Delete, Get, Patch, Post};

pub(super) const OPERATIONS: &[Operation] = &[
    operation(
        Get,
        "/v1/events",
        Look,
        "events",
        ("list_events", "Lists events by id; for shoppers only those with `listed` in their policy"),
    )
    .query(&[
        ("after", "The `next` of the page before", "string"),
        ("limit", "Most events in the page, 1 to 100", "integer"),
    ])
    .answers(&[(200, "A page of events", Json("EventList"))]),
    operation(
        Post,
        "/v1/events",
        Admin,
        "events",
        (
            "create_event",
            "Creates an event; the same again is the same event",
        ),
    )
    .takes("EventRequest")
    .sized(BodySize::Chart)
    .refuses(&[&[&kinds::EVENT_EXISTS]])
    .answers(&[
        (201, "The new event", Json("Event")),
        (200, "The event, which was there already", Json("Event")),
    ]),
    operation(
        Get,
        "/v1/events/{event}",
        Look,
        "events",
        ("read_event", "Reads an event"),
    )
    .answers(AN_EVENT),
    operation(
        Patch,
        "/v1/events/{event}",
        Admin,
        "events",
        ("update_event", "Changes parts of an event's policy"),
    )
    .takes("UpdateRequest")
    .answers(AN_EVENT),
    operation(
        Post,
        "/v1/events/{event}/cancel",
        Admin,
        "events",
        ("cancel_event", "Calls an event off and revokes its holds"),
    )
    .takes("CallOffRequest")
    .answers(AN_EVENT),
    operation(
        Get,
        "/v1/events/{event}/chart",
        Look,
        "seats",
        ("read_chart", "The seat plan, which never changes"),
    )
    .headers(&[KNOWN])
    .answers(&[
        (200, "The chart", Json("Chart")),
        (304, "Nothing new", Nothing),
    ]),
    operation(
        Get,
        "/v1/events/{event}/seats",
        Look,
        "seats",
        ("read_seats", "The seats as they are at one commit number"),
    )
    .headers(&[KNOWN])
    .answers(&[
        (200, "The seats", Json("Seats")),
        (304, "Nothing new", Nothing),
    ]),
    operation(
        Get,
        "/v1/events/{event}/feed",
        Look,
        "seats",
        (
            "read_feed",
            "The changes of the seats, as server-sent events without a gap",
        ),
    )
    .query(&[(
        "after",
        "The `seq` that is known; else the feed begins with what comes next",
        "integer",
    )])
    .headers(&[(
        "Last-Event-ID",
        "As `after`, sent by browsers that reconnect",
    )])
    .answers(&[(
        200,
        "`id:` is the `seq`, `data:` a FeedEntry; `event: reset` asks for a new snapshot",
        Media("text/event-stream"),
    )]),
    operation(
        Post,
        "/v1/events/{event}/holds",
        Buy,
        "holds",
        (
            "hold",
            "Holds units, all or none. `best` and areas choose anew each time: without an Idempotency-Key \
             a request that is repeated because its answer was lost may hold twice",
        ),
    )
    .takes("HoldRequest")
    .keyed(Keyed::Optional)
    .refuses(&[NO_CHOICE, NO_SALE])
    .answers(&[
        (201, "The new hold, with its secret", Json("Hold")),
        (
            200,
            "The holder's own hold of exactly these seats",
            Json("Hold"),
        ),
    ]),
    operation(
        Get,
        "/v1/holds/{hold}",
        Buy,
        "holds",
        ("read_hold", "Reads a hold; never with its secret"),
    )
    .headers(&[SECRET])
    .answers(A_HOLD),
    operation(
        Patch,
        "/v1/holds/{hold}",
        Buy,
        "holds",
        ("change_hold", "Adds units and drops units, all or nothing"),
    )
    .takes("ChangeRequest")
    .keyed(Keyed::Optional)
    .headers(&[SECRET])
    .refuses(&[NO_CHOICE, NO_SALE, NO_HOLD])
    .answers(A_HOLD),
    operation(
        Delete,
        "/v1/holds/{hold}",
        Buy,
        "holds",
        (
            "release_hold",
            "Gives a hold up; repeating gives the same answer",
        ),
    )
    .query(&[("fence", "Refuse unless this is the hold's fence", "integer")])
    .headers(&[SECRET])
    .refuses(&[NO_HOLD])
    .answers(A_HOLD),
    operation(
        Post,
        "/v1/holds/{hold}/extend",
        Buy,
        "holds",
        (
            "extend_hold",
            "Pushes a hold's end later, never beyond its cap",
        ),
    )
    .takes("ExtendRequest")
    .keyed(Keyed::Optional)
    .headers(&[SECRET])
    .refuses(&[NO_HOLD, &[&kinds::CAP_REACHED]])
    .answers(A_HOLD),
    operation(
        Post,
        "/v1/holds/{hold}/confirm",
        Buy,
        "bookings",
        ("confirm_hold", "Turns a hold into a booking"),
    )
    .takes("ConfirmRequest")
    .keyed(Keyed::Required)
    .headers(&[SECRET])
    .refuses(&[NO_HOLD, &[&kinds::PAYMENT_REQUIRED]])
    .answers(&[(201, "The booking", Json("Booking"))]),
    operation(
        Post,
        "/v1/holds/{hold}/checkout",
        Buy,
        "bookings",
        (
            "checkout_hold",
            "Pins a hold and opens a payment for the buyer",
        ),
    )
    .takes("CheckoutRequest")
    .keyed(Keyed::Required)
    .headers(&[SECRET, BOOKING_SECRET])
    .refuses(&[NO_HOLD, NO_RETURN, NO_PAYMENT])
    .answers(&[(
        201,
        "The booking, which waits for its payment",
        Json("Booking"),
    )]),
    operation(
        Post,
        "/v1/holds/{hold}/abandon",
        Buy,
        "holds",
        ("abandon_checkout", "Gives the payment of a hold up"),
    )
    .takes("AbandonRequest")
    .headers(&[SECRET])
    .refuses(&[NO_HOLD])
    .answers(A_HOLD),
    operation(
        Post,
        "/v1/holds/{hold}/revoke",
        Admin,
        "holds",
        ("revoke_hold", "Ends a hold by staff"),
    )
    .takes("RevokeRequest")
    .refuses(&[NO_HOLD])
    .answers(A_HOLD),
    operation(
        Post,
        "/v1/events/{event}/sales",
        Sell,
        "bookings",
        ("sell", "Sells free units at once, as a box office does"),
    )
    .takes("SaleRequest")
    .keyed(Keyed::Required)
    .refuses(&[NO_CHOICE, NO_SALE])
    .answers(&[(201, "The booking", Json("Booking"))]),
    operation(
        Get,
        "/v1/bookings/{booking}",
        Buy,
        "bookings",
        ("read_booking", "Reads a booking"),
    )
    .headers(&[SECRET, BOOKING_SECRET])
    .answers(&[(200, "The booking", Json("Booking"))]),
    operation(
        Post,
        "/v1/bookings/{booking}/cancel",
        Buy,
        "bookings",
        (
            "cancel_booking",
            "Gives back lines of a booking, or all of them",
        ),
    )
    .takes("CancelRequest")
    .keyed(Keyed::Required)
    .headers(&[SECRET, BOOKING_SECRET])
    .refuses(&[NO_RETURN])
    .answers(&[(200, "The booking", Json("Booking"))]),
    operation(
        Post,
        "/v1/bookings/{booking}/refunds",
        Admin,
        "bookings",
        (
            "refund_booking",
            "Sends money of a booking back that keeps its units",
        ),
    )
    .takes("RefundRequest")
    .keyed(Keyed::Required)
    .refuses(&[&[&kinds::NOTHING_PAID]])
    .answers(&[(200, "The booking", Json("Booking"))]),
    operation(
        Post,
        "/v1/exchanges",
        Buy,
        "bookings",
        (
            "exchange_units",
            "Swaps lines of a booking for the units of a hold that cost no more; what costs more is a \
             checkout with `exchange`",
        ),
    )
    .takes("ExchangeRequest")
    .keyed(Keyed::Required)
    .headers(&[SECRET, BOOKING_SECRET])
    .refuses(&[NO_HOLD, NO_RETURN, &[&kinds::PAYMENT_REQUIRED]])
    .answers(&[(200, "The booking", Json("Booking"))]),
    operation(
        Get,
        "/v1/payments",
        Look,
        "bookings",
        ("read_payments", "How bookings are paid here"),
    )
    .answers(&[(200, "Who takes the money, if anybody", Json("Payments"))]),
    operation(
        Post,
        "/v1/webhooks/stripe",
        Anyone,
        "bookings",
        (
            "stripe_notice",
            "For Stripe: what became of payments, signed",
        ),
    )
    .sized(BodySize::Notice)
    .refuses(&[&[&kinds::NOT_FOUND, &kinds::PAYMENT_UNAVAILABLE], LEDGER])
    .answers(&[(200, "It is committed", Json("Received"))]),
    operation(
        Post,
        "/v1/events/{event}/block",
        Admin,
        "seats",
        ("block", "Takes free units out of sale, all or none"),
    )
    .takes("BlockRequest")
    .refuses(&[NO_CHOICE])
    .answers(&[(200, "The units", Json("BlockedUnits"))]),
    operation(
        Post,
        "/v1/events/{event}/unblock",
        Admin,
        "seats",
        ("unblock", "Puts blocked units back on sale, all or none"),
    )
    .takes("BlockRequest")
    .refuses(&[NO_CHOICE])
    .answers(&[(200, "The units", Json("UnblockedUnits"))]),
    operation(
        Get,
        "/v1/events/{event}/units/{unit}/history",
        Admin,
        "seats",
        ("read_history", "Every transition of a unit, oldest first"),
    )
    .answers(&[(200, "The history", Json("History"))]),
    operation(
        Post,
        "/v1/sessions",
        NewShopper,
        "access",
        ("open_session", "Lets a shopper in; also sets a cookie"),
    )
    .takes("SessionRequest")
    .answers(&[(201, "The session", Json("Session"))]),
    operation(
        Post,
        "/v1/keys",
        Admin,
        "access",
        (
            "create_key",
            "Makes an API key, which is told here and never again",
        ),
    )
    .takes("KeyRequest")
    .answers(&[(201, "The key", Json("NewKey"))]),
    operation(
        Get,
        "/v1/keys",
        Admin,
        "access",
        ("list_keys", "Every API key, oldest first, revoked ones too"),
    )
    .answers(&[(200, "The keys", Json("KeyList"))]),
    operation(
        Delete,
        "/v1/keys/{key}",
        Admin,
        "access",
        (
            "revoke_key",
            "Revokes an API key; this server refuses it at once, others of the ledger within a second. A \
             key that replaces it does not own its holds and bookings: those open by their secrets, or \
             with a key of scope `admin`",
        ),
    )
    .refuses(&[&[&kinds::LAST_ADMIN_KEY]])
    .answers(&[(200, "The key", Json("Key"))]),
    operation(Get, "/", Anyone, "system", ("page", "The live seat map")).answers(A_PAGE),
    operation(
        Get,
        "/assets/{*path}",
        Anyone,
        "system",
        ("page_part", "Parts of the seat map page"),
    )
    .answers(&[(200, "The file", Nothing), (304, "Nothing new", Nothing)]),
    operation(
        Get,
        "/problems/{code}",
        Anyone,
        "system",
        ("problem", "What a problem means"),
    )
    .answers(A_PAGE),
    operation(
        Get,
        "/docs",
        Anyone,
        "system",
        ("docs", "This description, for people"),
    )
    .answers(A_PAGE),
    operation(
        Get,
        "/docs/",
        Anyone,
        "system",
        ("docs_with_slash", "The same"),
    )
    .answers(A_PAGE),
    operation(
        Get,
        "/docs/{*path}",
        Anyone,
        "system",
        ("docs_part", "Parts of that page"),
    )
    .answers(&[(200, "The file", Nothing), (304, "Nothing new", Nothing)]),
    operation(
        Get,
        "/openapi.json",
        Anyone,
        "system",
        ("openapi", "This description"),
    )
    .answers(&[(200, "An OpenAPI 3.1 document", Json("Document"))]),
    operation(
        Get,
        "/healthz",
        Anyone,
        "system",
        ("healthz", "The process answers"),
    )
    .answers(&[(200, "It does", Json("ServerStatus"))]),
    operation(
        Get,
        "/readyz",
        Anyone,
        "system",
        ("readyz", "Commands are taken"),
    )
    .refuses(&[&[&kinds::READ_ONLY, &kinds::SHUTTING_DOWN]])
    .answers(&[(200, "They are", Json("ServerStatus"))]),
    operation(
        Get,
        METRICS,
        Anyone,
        "system",
        (
            "metrics",
            "Counters and times; on the admin listener if there is one",
        ),
    )
    .answers(&[(
        200,
        "Prometheus text; OpenMetrics where `Accept` names it",
        Media("text/plain"),
    )]),
];
