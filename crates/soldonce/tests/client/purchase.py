"""A purchase by the client that a generator made of openapi.json. mypy checks it before it runs."""

import sys
import uuid

from soldonce_client import AuthenticatedClient
from soldonce_client.api.bookings import cancel_booking, confirm_hold, read_booking
from soldonce_client.api.events import create_event
from soldonce_client.api.holds import hold, release_hold
from soldonce_client.api.seats import block, read_seats
from soldonce_client.api.system import readyz
from soldonce_client.models.best_request import BestRequest
from soldonce_client.models.block_request import BlockRequest
from soldonce_client.models.blocked_units import BlockedUnits
from soldonce_client.models.booking import Booking
from soldonce_client.models.cancel_request import CancelRequest
from soldonce_client.models.confirm_request import ConfirmRequest
from soldonce_client.models.event import Event
from soldonce_client.models.event_request import EventRequest
from soldonce_client.models.event_request_prices import EventRequestPrices
from soldonce_client.models.grid_chart import GridChart
from soldonce_client.models.hold import Hold
from soldonce_client.models.hold_request import HoldRequest
from soldonce_client.models.hold_state import HoldState
from soldonce_client.models.own_unit_request import OwnUnitRequest
from soldonce_client.models.problem import Problem
from soldonce_client.models.seats import Seats
from soldonce_client.models.server_status import ServerStatus
from soldonce_client.models.status_word import StatusWord
from soldonce_client.models.unit_request import UnitRequest


def wanted(answer: object, problem: str) -> Problem:
    """A refusal of this code."""
    assert isinstance(answer, Problem), answer
    assert answer.code == problem, answer
    return answer


def buy(client: AuthenticatedClient) -> None:
    ready = readyz.sync(client=client)
    assert isinstance(ready, ServerStatus) and ready.status is StatusWord.READY

    prices = EventRequestPrices.from_dict({"Standard": 4500})
    event = create_event.sync(
        client=client,
        body=EventRequest(
            id="hall",
            name="Hall",
            currency="EUR",
            chart=GridChart(format_="grid", rows=2, seats_per_row=10, category="Standard"),
            prices=prices,
        ),
    )
    assert isinstance(event, Event) and event.free == 20, event

    seats = [UnitRequest(seat="A-1"), UnitRequest(seat="A-2")]
    held = hold.sync(
        "hall",
        client=client,
        body=HoldRequest(holder="ann", units=seats),
        idempotency_key=str(uuid.uuid4()),
    )
    assert isinstance(held, Hold) and held.total == 9000 and held.state is HoldState.ACTIVE, held
    late = hold.sync("hall", client=client, body=HoldRequest(holder="bob", units=seats))
    conflicts = wanted(late, "unit_unavailable").conflicts
    assert isinstance(conflicts, list) and len(conflicts) == 2, conflicts

    booking = confirm_hold.sync(
        held.id,
        client=client,
        body=ConfirmRequest(fence=held.fence),
        idempotency_key=str(uuid.uuid4()),
    )
    assert isinstance(booking, Booking) and len(booking.lines) == 2, booking
    read = read_booking.sync(booking.id, client=client)
    assert isinstance(read, Booking) and read.state == "confirmed", read
    cancelled = cancel_booking.sync(
        booking.id,
        client=client,
        body=CancelRequest(units=[OwnUnitRequest(seat="A-2")]),
        idempotency_key=str(uuid.uuid4()),
    )
    assert isinstance(cancelled, Booking) and cancelled.state == "partly_cancelled", cancelled

    best = HoldRequest(holder="bob", best=BestRequest(quantity=3))
    other = hold.sync("hall", client=client, body=best, idempotency_key=str(uuid.uuid4()))
    assert isinstance(other, Hold) and len(other.units) == 3, other
    released = release_hold.sync(other.id, client=client)
    assert isinstance(released, Hold) and released.state is HoldState.RELEASED, released
    blocked = block.sync(
        "hall",
        client=client,
        body=BlockRequest(units=[UnitRequest(seat="B-1")], reason="a camera stands there"),
    )
    assert isinstance(blocked, BlockedUnits) and len(blocked.blocked) == 1, blocked

    now = read_seats.sync("hall", client=client)
    assert isinstance(now, Seats), now
    assert (now.sold, now.held, now.blocked) == (["A-1"], [], ["B-1"]), now
    wanted(read_booking.sync("bkg_none", client=client), "booking_not_found")


def main() -> None:
    url, key = sys.argv[1:]
    with AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True) as client:
        buy(client)
    with AuthenticatedClient(base_url=url, token="x", raise_on_unexpected_status=True) as client:
        wanted(read_seats.sync("hall", client=client), "unauthenticated")


main()
