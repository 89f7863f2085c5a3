"""Holds, buys and watches seats by gRPC, with a client that protoc made of proto/."""

import json
import sys
import uuid

import grpc
from google.rpc import error_details_pb2, status_pb2
from soldonce.v1 import events_pb2, problem_pb2, sales_pb2, sales_pb2_grpc, units_pb2


def wanted(call, reason):
    """Makes a call that must be refused for this reason; returns its Problem."""
    try:
        answer = call()
    except grpc.RpcError as refused:
        trailers = dict(refused.trailing_metadata())
        status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
        assert status.code == refused.code().value[0], refused
        info, problem = error_details_pb2.ErrorInfo(), problem_pb2.Problem()
        assert status.details[0].Unpack(info) and info.reason == reason, info
        assert status.details[-1].Unpack(problem) and problem.code == reason, problem
        return problem
    raise AssertionError(answer)


def seats(*names):
    return [units_pb2.WantedUnit(seat=name) for name in names]


def buy(sales, key):
    by = [("authorization", "Bearer " + key)]
    new = lambda: by + [("idempotency-key", str(uuid.uuid4()))]
    chart = {"format": "grid", "rows": 2, "seats_per_row": 10, "category": "Standard"}
    event = sales.CreateEvent(
        events_pb2.CreateEventRequest(
            id="grpc-hall",
            name="Hall",
            currency="EUR",
            chart_json=json.dumps(chart),
            prices={"Standard": 4500},
            policy=events_pb2.Policy(units_per_hold_max=3),
        ),
        metadata=by,
    )
    assert (event.free, event.policy.units_per_hold_max) == (20, 3), event

    before = sales.GetSeats(events_pb2.GetSeatsRequest(event=event.id), metadata=by)
    feed = sales.WatchFeed(
        events_pb2.WatchFeedRequest(event=event.id, after=before.seq, each=True), metadata=by
    )
    assert next(feed).event.id == event.id

    wish = sales_pb2.HoldRequest(event=event.id, holder="ann", units=seats("A-1", "A-2"))
    hold = sales.Hold(wish, metadata=new(), timeout=10)
    assert (hold.total, hold.state) == (9000, "active"), hold
    assert sales.Hold(wish, metadata=by).id == hold.id, "the same hold"
    other = sales_pb2.HoldRequest(event=event.id, holder="bob", units=seats("A-2"))
    problem = wanted(lambda: sales.Hold(other, metadata=by), "unit_unavailable")
    assert problem.conflicts[0].seat == "A-2" and len(problem.alternatives) > 0, problem

    confirm = sales_pb2.ConfirmHoldRequest(hold=hold.id, fence=hold.fence)
    wanted(lambda: sales.ConfirmHold(confirm, metadata=by), "idempotency_key_missing")
    once = new()
    booking = sales.ConfirmHold(confirm, metadata=once)
    again, call = sales.ConfirmHold.with_call(confirm, metadata=once)
    assert again.id == booking.id and ("idempotency-replayed", "true") in call.initial_metadata()
    cancel = sales_pb2.CancelBookingRequest(
        booking=booking.id, units=[units_pb2.OwnUnit(seat="A-2")]
    )
    assert sales.CancelBooking(cancel, metadata=new()).state == "partly_cancelled"

    steps = [next(feed).frame for _ in range(3)]
    assert [frame.seq for frame in steps] == [before.seq + n for n in (1, 2, 3)], steps
    changes = [(change.state, [run.first for run in change.seats])
               for frame in steps for change in frame.changes]
    both = ["A-1", "A-2"]
    assert changes == [("held", both), ("sold", both), ("free", ["A-2"])], changes
    feed.cancel()


def main():
    key, address = sys.argv[1:]
    with grpc.insecure_channel(address, compression=grpc.Compression.Gzip) as channel:
        buy(sales_pb2_grpc.SalesStub(channel), key)
        sales = sales_pb2_grpc.SalesStub(channel)
        read = events_pb2.GetSeatsRequest(event="grpc-hall")
        stranger = [("authorization", "Bearer x")]
        wanted(lambda: sales.GetSeats(read, metadata=stranger), "unauthenticated")


main()
