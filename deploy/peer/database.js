// PostgreSQL: the tables, and transactions on pooled connections. Statements have names, so that each
// connection parses them once.
import pg from "pg";

const TABLES = `
  CREATE TABLE IF NOT EXISTS peer_seats (
    event text, seat text, version int NOT NULL DEFAULT 0, holder text, held_until timestamptz,
    PRIMARY KEY (event, seat)
  );
  CREATE TABLE IF NOT EXISTS peer_holds (
    id uuid PRIMARY KEY, event text NOT NULL, seat text NOT NULL, holder text NOT NULL,
    held_until timestamptz NOT NULL
  )`;

export function openDatabase({ databaseUrl, connections }) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
  // An idle connection that breaks is replaced by the pool.
  pool.on("error", (error) => console.error(error.message));
  return pool;
}

export async function makeTables(pool) {
  await pool.query(TABLES);
}

/// Runs `body` in a transaction, which is rolled back if it gives nothing or throws.
export async function inTransaction(pool, body) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query("BEGIN");
    const result = await body(client);
    await client.query(result ? "COMMIT" : "ROLLBACK");
    return result;
  } catch (error) {
    // The pool throws a connection away on which not even this works.
    await client.query("ROLLBACK").catch((failed) => (broken = failed));
    throw error;
  } finally {
    client.release(broken);
  }
}
