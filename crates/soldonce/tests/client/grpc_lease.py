"""Leases by gRPC: a worker that is paused loses its lease, and the target of its writes refuses it."""

import sys
import time
import uuid

import grpc
from google.rpc import error_details_pb2, status_pb2
from soldonce.v1 import access_pb2, leases_pb2, leases_pb2_grpc, sales_pb2_grpc


class Worker:
    """Has the lease on a name while its deadline has not passed."""

    def __init__(self, address, key):
        self.leases = leases_pb2_grpc.LeasesStub(grpc.insecure_channel(address))
        self.by = [("authorization", "Bearer " + key)]
        self.owner = str(uuid.uuid4())

    def acquire(self, name, ttl_ms, wait_ms=0):
        wish = leases_pb2.AcquireRequest(
            name=name, owner=self.owner, ttl_ms=ttl_ms, wait_ms=wait_ms
        )
        asked = time.monotonic()
        lease = self.leases.Acquire(wish, metadata=self.by, timeout=wait_ms / 1000 + 10)
        self.name, self.token = name, lease.token
        self.deadline = asked + (lease.waited_ms + lease.remaining_ms) / 1000
        return lease

    def renew(self, ttl_ms):
        wish = leases_pb2.RenewRequest(
            name=self.name, owner=self.owner, token=self.token, ttl_ms=ttl_ms
        )
        asked = time.monotonic()
        lease = self.leases.Renew(wish, metadata=self.by, timeout=10)
        self.deadline = asked + lease.remaining_ms / 1000

    def release(self):
        wish = leases_pb2.ReleaseRequest(name=self.name, owner=self.owner, token=self.token)
        return self.leases.Release(wish, metadata=self.by, timeout=10).released

    def is_live(self):
        return time.monotonic() < self.deadline


class Gate:
    """The target: refuses a token that is lower than one it has seen."""

    def __init__(self):
        self.highest, self.written = "", []

    def write(self, token, line):
        if token < self.highest:
            return False
        self.highest = token
        self.written.append(line)
        return True


def reason(call):
    try:
        answer = call()
    except grpc.RpcError as refused:
        trailers = dict(refused.trailing_metadata())
        status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
        info = error_details_pb2.ErrorInfo()
        assert status.details[0].Unpack(info), status
        return info.reason, info.metadata.get("reason")
    raise AssertionError(answer)


def fence(key, addresses):
    first, last = addresses[0], addresses[-1]
    gate, name = Gate(), "report:" + str(uuid.uuid4())
    ann, bob = Worker(first, key), Worker(last, key)
    watch = bob.leases.Watch(leases_pb2.WatchRequest(name=name), metadata=bob.by)
    assert next(watch).WhichOneof("state") == "released"

    lease = ann.acquire(name, ttl_ms=10000)
    assert ann.is_live() and gate.write(lease.token, "ann begins")
    assert ann.acquire(name, ttl_ms=10000).token == lease.token, "asked again"
    held = next(watch)
    assert held.held.token == lease.token, held
    assert reason(lambda: bob.acquire(name, ttl_ms=30000)) == ("lease_held", None)
    # Another server knows as much of it.
    ann.leases = bob.leases
    ann.renew(10000)

    # Ann is paused here: nothing renews the lease, and Bob has it when it ends.
    lease = bob.acquire(name, ttl_ms=30000, wait_ms=20000)
    assert lease.waited_ms > 0 and bob.token > ann.token, lease
    assert gate.write(bob.token, "bob goes on")
    assert not ann.is_live(), "its own clock says so"
    assert not gate.write(ann.token, "ann goes on"), "and the target needs no clock"
    assert reason(lambda: ann.renew(2000)) == ("lease_lost", "taken")
    assert not ann.release() and bob.is_live()
    seen = next(watch)
    while seen.held.token != bob.token:
        seen = next(watch)
    assert bob.release()
    seen = next(watch)
    assert seen.released.token == bob.token, seen
    assert gate.written == ["ann begins", "bob goes on"]
    watch.cancel()


def main():
    admin, *addresses = sys.argv[1:]
    by = [("authorization", "Bearer " + admin)]
    sales = sales_pb2_grpc.SalesStub(grpc.insecure_channel(addresses[0]))
    wish = access_pb2.CreateKeyRequest(name="worker", scopes=["lease"])
    fence(sales.CreateKey(wish, metadata=by).key, addresses)


main()
