// A holder for the comparison: node-redlock on ioredis, commanded by lines. holder.rs describes them.

import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { default as Redlock, ResourceLockedError, ExecutionError } from "redlock";

const TTL_MS = 10_000;
const HELD_MS = 5;

const client = new Redis(process.argv[2]);
// Told by the command that meets it.
client.on("error", () => {});
const redlock = new Redlock([client]);
redlock.on("error", () => {});
const patient = { retryCount: -1 };
/** What is held: the signal of its loss, and how to let go. */
let held;

const names = (name) => [`node-redlock:${name}`];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const all = (tasks, work) => Promise.all(Array.from({ length: Number(tasks) }, (_, task) => work(task)));

/** Locks by `using`, which extends the lock and tells of its loss; returns when it is taken. */
function hold(name, ttl, settings) {
  return new Promise((taken, failed) => {
    const using = redlock.using(names(name), Number(ttl), settings, (signal) => {
      return new Promise((letGo) => {
        held = { signal, release: () => (letGo(), using) };
        taken();
      });
    });
    using.catch(failed);
  });
}

const COMMANDS = {
  async take(name, ttl) {
    try {
      await hold(name, ttl, { retryCount: 0 });
      return "yes";
    } catch (error) {
      if (error instanceof ExecutionError || error instanceof ResourceLockedError) return "no";
      throw error;
    }
  },
  async wait(name, ttl) {
    for (;;) {
      try {
        await hold(name, ttl, { retryCount: 0 });
        return "yes";
      } catch {
        // As it pauses itself. Its own retries count as time of the lock, which ends before it begins when they take longer.
        await pause(100 + 200 * Math.random());
      }
    }
  },
  async mine() {
    return held.signal.aborted ? "no" : "yes";
  },
  async drop() {
    await held.release();
    return "done";
  },
  async pairs(tasks, ms) {
    const end = performance.now() + Number(ms);
    const counts = await all(tasks, async (task) => {
      let count = 0;
      for (; performance.now() < end; count += 1) {
        const lock = await redlock.acquire(names(`own-${task}`), TTL_MS);
        await lock.release();
      }
      return count;
    });
    return counts.reduce((sum, count) => sum + count, 0);
  },
  async turns(tasks, turns) {
    const begun = performance.now();
    await all(tasks, async () => {
      for (let turn = 0; turn < Number(turns); turn += 1) {
        const lock = await redlock.acquire(names("hot"), TTL_MS, patient);
        await pause(HELD_MS);
        await lock.release();
      }
    });
    return Math.round((performance.now() - begun) * 1000);
  },
};

await client.ping();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...args] = line.split(" ");
  console.log(String(await COMMANDS[command](...args)));
}
process.exit(0);
