// The storm of `soldonce lab storm` by another load generator, to cross-check its figures: 200 users
// in a closed loop want 3 seats for 10 s, each request for another holder.
//
//   k6 run --quiet -e KEY=sk_.. [-e URL=http://127.0.0.1:8080] [-e USERS=200] [-e SECONDS=10] [-e SEATS=3] storm.js
//
// KEY has the scope admin. The one line on standard output is JSON; the exit code is not 0 if there
// are more or fewer winners than seats, or if an answer is neither 201, 409 nor 429.
import http from "k6/http";
import { Counter } from "k6/metrics";

const url = __ENV.URL || "http://127.0.0.1:8080";
const users = Number(__ENV.USERS || 200);
const seconds = Number(__ENV.SECONDS || 10);
const seats = Number(__ENV.SEATS || 3);
const headers = { Authorization: `Bearer ${__ENV.KEY}`, "Content-Type": "application/json" };

const won = new Counter("won");
const taken = new Counter("taken");
const limited = new Counter("limited");
const other = new Counter("other");

export const options = {
  scenarios: { storm: { executor: "constant-vus", vus: users, duration: `${seconds}s`, gracefulStop: "10s" } },
  summaryTrendStats: ["avg", "med", "p(90)", "p(99)", "max"],
  thresholds: { won: [`count==${seats}`], other: ["count==0"] },
};

export function setup() {
  const id = `storm-${Date.now()}`;
  const event = {
    id,
    name: "Storm",
    currency: "EUR",
    chart: { format: "grid", rows: 1, seats_per_row: seats, category: "Standard" },
    prices: { Standard: 4500 },
    policy: { hold_ttl_ms: 7200000, hold_max_ms: 7200000 },
  };
  const made = http.post(`${url}/v1/events`, JSON.stringify(event), { headers });
  if (made.status !== 201) throw new Error(`no event: ${made.status} ${made.body}`);
  return { path: `${url}/v1/events/${id}/holds` };
}

export default function storm({ path }) {
  const seat = `A-${((__VU + __ITER) % seats) + 1}`;
  const body = JSON.stringify({ holder: `user-${__VU}-${__ITER}`, units: [{ seat }] });
  const counters = { 201: won, 409: taken, 429: limited };
  const { status } = http.post(path, body, { headers });
  (counters[status] || other).add(1);
}

export function handleSummary({ metrics }) {
  const count = (name) => (metrics[name] ? metrics[name].values.count : 0);
  const latency = metrics.http_req_duration.values;
  const answers = { 201: count("won"), 409: count("taken"), 429: count("limited"), other: count("other") };
  const all = Object.values(answers).reduce((sum, one) => sum + one, 0);
  const micros = (name) => Math.round(latency[name] * 1000);
  const line = {
    users,
    seconds,
    seats,
    winners: answers[201],
    answers,
    rate_per_s: Math.round(all / seconds),
    latency_us: { avg: micros("avg"), p50: micros("med"), p90: micros("p(90)"), p99: micros("p(99)"), max: micros("max") },
  };
  return { stdout: `${JSON.stringify(line)}\n` };
}
