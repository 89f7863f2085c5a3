// What the environment says. Everything has a default but the key.

const FLOWS = ["distributed", "pessimistic", "redis"];

export const settings = {
  flow: oneOf("PEER_FLOW", FLOWS),
  databaseUrl: process.env.PEER_DATABASE_URL || "postgres://postgres@127.0.0.1/postgres",
  // One Redis, or the nodes of a cluster: HOST:PORT,HOST:PORT.
  redis: (process.env.PEER_REDIS || "127.0.0.1:6379").split(",").map(address),
  // What every request is to show, as `Authorization: Bearer KEY`.
  key: required("PEER_KEY"),
  port: count("PEER_PORT", 3000),
  // Connections to PostgreSQL, of each process.
  connections: count("PEER_CONNECTIONS", 10),
  processes: count("PEER_PROCESSES", 1),
  // A lock outlives its transaction, and ends by itself if its process does.
  lockMs: 30_000,
  // How often a busy lock is asked for again, and after how long.
  lockRetries: count("PEER_LOCK_RETRIES", 3),
  lockRetryMs: 100,
  // Longer than any storm: what is held stays held.
  holdMs: 2 * 60 * 60 * 1000,
};

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name}: must be set`);
  return value;
}

function count(name, otherwise) {
  const number = Number(process.env[name] || otherwise);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${name}: not a count`);
  return number;
}

function oneOf(name, known) {
  const value = process.env[name] || known[0];
  if (!known.includes(value)) throw new Error(`${name}: known are ${known.join(", ")}`);
  return value;
}

function address(text) {
  const [host, port] = text.split(":");
  return { host, port: Number(port) };
}
