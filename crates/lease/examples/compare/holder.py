"""A holder for the comparison: redis-py's lock, commanded by lines. holder.rs describes them."""

import asyncio
import sys
import time

import redis.asyncio as redis
from redis.exceptions import RedisError

TTL_S = 10
HELD_S = 0.005


class Holder:
    def __init__(self, url):
        self.client = redis.from_url(url)
        self.held = None

    def lock(self, name, ttl_ms):
        return self.client.lock(f"redis-py:{name}", timeout=int(ttl_ms) / 1000)

    async def take(self, name, ttl_ms):
        self.held = self.lock(name, ttl_ms)
        return "yes" if await self.held.acquire(blocking=False) else "no"

    async def wait(self, name, ttl_ms):
        self.held = self.lock(name, ttl_ms)
        while True:
            try:
                await self.held.acquire()
                return "yes"
            except RedisError:  # The server is being replaced.
                await asyncio.sleep(0.05)

    async def mine(self):
        try:
            return "yes" if await self.held.owned() else "no"
        except RedisError:
            return "no"

    async def drop(self):
        await self.held.release()
        return "done"

    async def pairs(self, tasks, ms):
        end = time.monotonic() + int(ms) / 1000

        async def lock_and_unlock(task):
            count = 0
            while time.monotonic() < end:
                lock = self.lock(f"own-{task}", TTL_S * 1000)
                assert await lock.acquire(blocking=False)
                await lock.release()
                count += 1
            return count

        return sum(await asyncio.gather(*map(lock_and_unlock, range(int(tasks)))))

    async def turns(self, tasks, turns):
        async def take_turns(_):
            for _ in range(int(turns)):
                async with self.lock("hot", TTL_S * 1000):
                    await asyncio.sleep(HELD_S)

        begun = time.monotonic()
        await asyncio.gather(*map(take_turns, range(int(tasks))))
        return int((time.monotonic() - begun) * 1e6)


async def main():
    holder = Holder(sys.argv[1])
    await holder.client.ping()
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, *arguments = line.split()
        print(await getattr(holder, command)(*arguments), flush=True)


asyncio.run(main())
