// The rows of seats and holds, for every flow that keeps them in PostgreSQL.

const FREE = `SELECT holder IS NULL OR held_until <= now() AS free FROM peer_seats
  WHERE event = $1 AND seat = $2`;
const LOOK = { name: "look", text: FREE };
const LOOK_AND_LOCK = { name: "look_and_lock", text: `${FREE} FOR UPDATE` };

const WRITE_SEAT = {
  name: "write_seat",
  text: `UPDATE peer_seats SET holder = $3, held_until = now() + $4 * interval '1 millisecond',
    version = version + 1 WHERE event = $1 AND seat = $2 AND (holder IS NULL OR held_until <= now())
    RETURNING held_until`,
};
const WRITE_HOLD = {
  name: "write_hold",
  text: "INSERT INTO peer_holds (id, event, seat, holder, held_until) VALUES ($1, $2, $3, $4, $5)",
};
const MAKE = `INSERT INTO peer_seats (event, seat) SELECT $1, seat FROM unnest($2::text[]) AS seat`;
const ALL = "SELECT seat FROM peer_seats WHERE event = $1";
const HELD = `${ALL} AND held_until > now() ORDER BY seat`;

export async function isFree(client, { event, seat }) {
  return first(await client.query({ ...LOOK, values: [event, seat] }));
}

/// The same, and no other transaction may look so until the transaction ends.
export async function isFreeWhenLocked(client, { event, seat }) {
  return first(await client.query({ ...LOOK_AND_LOCK, values: [event, seat] }));
}

function first({ rows }) {
  return rows.length > 0 && rows[0].free;
}

/// Gives nothing if the seat is not free after all: a lock in Redis may have ended too early.
export async function writeHold(client, { id, event, seat, holder }, holdMs) {
  const { rows } = await client.query({ ...WRITE_SEAT, values: [event, seat, holder, holdMs] });
  if (rows.length === 0) return null;
  const until = rows[0].held_until;
  await client.query({ ...WRITE_HOLD, values: [id, event, seat, holder, until] });
  return { id, event, seat, holder, expires_at: until };
}

export async function makeSeats(pool, event, seats) {
  await pool.query(MAKE, [event, seats]);
}

export async function seatsOf(pool, event) {
  const { rows } = await pool.query(ALL, [event]);
  return rows.map((row) => row.seat);
}

export async function heldSeats(pool, event) {
  const { rows } = await pool.query(HELD, [event]);
  return rows.map((row) => row.seat);
}

export async function removeSeats(pool, event) {
  await pool.query("DELETE FROM peer_holds WHERE event = $1", [event]);
  await pool.query("DELETE FROM peer_seats WHERE event = $1", [event]);
}
