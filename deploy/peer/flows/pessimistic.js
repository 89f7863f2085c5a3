// The row of the seat is locked in PostgreSQL: everybody else who wants it waits in line.
import { inTransaction } from "../database.js";
import { heldSeats, isFreeWhenLocked, removeSeats, writeHold } from "../seats.js";

export function pessimistic({ pool, settings }) {
  return {
    hold: (wanted) =>
      inTransaction(pool, async (client) => {
        if (!(await isFreeWhenLocked(client, wanted))) return null;
        return writeHold(client, wanted, settings.holdMs);
      }),
    held: (event) => heldSeats(pool, event),
    cancel: (event) => removeSeats(pool, event),
  };
}
