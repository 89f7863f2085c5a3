// The storm of storm.js over gRPC: 200 users in a closed loop want 3 seats for 10 s.
//
//   k6 run --quiet -e KEY=sk_.. [-e ADDRESS=127.0.0.1:8080] [-e USERS=200] [-e SECONDS=10] [-e SEATS=3] storm-grpc.js
//
// KEY has the scope admin. The one line on standard output is JSON; the exit code is not 0 if there
// are more or fewer winners than seats, or if an answer is neither OK, a taken seat nor a limit.
import grpc from "k6/net/grpc";
import { Counter } from "k6/metrics";

const address = __ENV.ADDRESS || "127.0.0.1:8080";
const users = Number(__ENV.USERS || 200);
const seconds = Number(__ENV.SECONDS || 10);
const seats = Number(__ENV.SEATS || 3);
const call = { metadata: { authorization: `Bearer ${__ENV.KEY}` } };
const SALES = "soldonce.v1.Sales";

const client = new grpc.Client();
client.load(["../../proto"], "soldonce/v1/sales.proto");

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
  const chart = { format: "grid", rows: 1, seats_per_row: seats, category: "Standard" };
  const event = {
    id,
    name: "Storm",
    currency: "EUR",
    chart_json: JSON.stringify(chart),
    prices: { Standard: 4500 },
    policy: { hold_ttl_ms: 7200000, hold_max_ms: 7200000 },
  };
  client.connect(address, { plaintext: true });
  const made = client.invoke(`${SALES}/CreateEvent`, event, call);
  client.close();
  if (made.status !== grpc.StatusOK) throw new Error(`no event: ${JSON.stringify(made.error)}`);
  return { event: id };
}

export default function storm({ event }) {
  if (__ITER === 0) client.connect(address, { plaintext: true });
  const seat = `A-${((__VU + __ITER) % seats) + 1}`;
  const wish = { event, holder: `user-${__VU}-${__ITER}`, units: [{ seat }] };
  const counters = {
    [grpc.StatusOK]: won,
    [grpc.StatusFailedPrecondition]: taken,
    [grpc.StatusResourceExhausted]: limited,
  };
  const { status } = client.invoke(`${SALES}/Hold`, wish, call);
  (counters[status] || other).add(1);
}

export function handleSummary({ metrics }) {
  const count = (name) => (metrics[name] ? metrics[name].values.count : 0);
  const latency = metrics.grpc_req_duration.values;
  const answers = { ok: count("won"), taken: count("taken"), limited: count("limited"), other: count("other") };
  const all = Object.values(answers).reduce((sum, one) => sum + one, 0);
  const micros = (name) => Math.round(latency[name] * 1000);
  const line = {
    users,
    seconds,
    seats,
    winners: answers.ok,
    answers,
    rate_per_s: Math.round(all / seconds),
    latency_us: { avg: micros("avg"), p50: micros("med"), p90: micros("p(90)"), p99: micros("p(99)"), max: micros("max") },
  };
  return { stdout: `${JSON.stringify(line)}\n` };
}
