// Runs a script of k6 as k6 does: the setup, some turns of some users, the summary.
import { writeSync } from "node:fs";
import { metrics } from "k6/metrics";

const USERS = 5;
const TURNS = 4;

globalThis.__ENV = { KEY: process.env.KEY };
const script = await import("./script.mjs");
globalThis.__VU = 0;
globalThis.__ITER = 0;
const data = script.setup();
for (globalThis.__ITER = 0; __ITER < TURNS; __ITER += 1) {
  for (globalThis.__VU = 1; __VU <= USERS; __VU += 1) script.default(data);
}
const { stdout } = script.handleSummary({ metrics });
writeSync(1, `${JSON.stringify({ summary: JSON.parse(stdout), thresholds: script.options.thresholds })}\n`);
