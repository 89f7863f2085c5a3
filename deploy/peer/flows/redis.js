// The hold is a key in Redis and nothing else: as fast as it gets, and gone with the Redis.
import { removeSeats, seatsOf } from "../seats.js";

export function redisAlone({ pool, redis, settings }) {
  const keyOf = (event, seat) => `hold:${event}:${seat}`;
  return {
    async hold({ id, event, seat, holder }) {
      const until = new Date(Date.now() + settings.holdMs);
      const set = await redis.set(keyOf(event, seat), id, "PX", settings.holdMs, "NX");
      return set === "OK" ? { id, event, seat, holder, expires_at: until } : null;
    },
    async held(event) {
      const seats = await seatsOf(pool, event);
      const there = await Promise.all(seats.map((seat) => redis.exists(keyOf(event, seat))));
      return seats.filter((_, place) => there[place] === 1);
    },
    async cancel(event) {
      const seats = await seatsOf(pool, event);
      await Promise.all(seats.map((seat) => redis.del(keyOf(event, seat))));
      await removeSeats(pool, event);
    },
  };
}
