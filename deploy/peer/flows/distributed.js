// A lock of the seat in Redis, then look and write in PostgreSQL in a transaction, then the lock is
// released. A request that finds the lock busy tries again some times, and is refused then.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { inTransaction } from "../database.js";
import { heldSeats, isFree, removeSeats, writeHold } from "../seats.js";

export function distributed({ pool, redis, settings }) {
  async function acquire(key, token) {
    for (let attempt = 0; attempt <= settings.lockRetries; attempt += 1) {
      if (attempt > 0) await pause(settings.lockRetryMs);
      if ((await redis.set(key, token, "PX", settings.lockMs, "NX")) === "OK") return true;
    }
    return false;
  }

  return {
    async hold(wanted) {
      const key = `lock:${wanted.event}:${wanted.seat}`;
      const token = randomUUID();
      if (!(await acquire(key, token))) return null;
      try {
        return await inTransaction(pool, async (client) => {
          if (!(await isFree(client, wanted))) return null;
          return writeHold(client, wanted, settings.holdMs);
        });
      } finally {
        await redis.releaseLock(key, token);
      }
    },
    held: (event) => heldSeats(pool, event),
    cancel: (event) => removeSeats(pool, event),
  };
}
