// The server under test: the real binary on a folder of its own, stopped and started again on the
// same port, and its API for those who are not the page: the organiser and the rivals.

import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const ADMIN_KEY = "browser-tests-admin-key";
const DAY_MS = 24 * 60 * 60 * 1000;
const ADDRESS = /http:\/\/(127\.0\.0\.1:\d+)/;
// Of this file alone, also while a server is away. Each of its servers takes one.
const PORTS = named("SOLDONCE_PORTS").split(" ");

/** @param {string} name */
export function named(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run these tests by ./test or cargo test`);
  return value;
}

export class Server {
  /** @param {string[]} command  `serve` or `demo`, and its own arguments. */
  constructor(command) {
    this.command = command;
    this.folder = join(named("SOLDONCE_SCRATCH"), randomUUID());
    this.address = `127.0.0.1:${PORTS.shift()}`;
    /** @type {import("node:child_process").ChildProcess|null} */ this.process = null;
    mkdirSync(this.folder, { recursive: true });
  }

  /** @param {string[]} [command] */
  static async start(command = ["serve", "--shoppers", "open", "--free-sales=on"]) {
    const server = new Server(command);
    await server.start();
    return server;
  }

  get url() {
    return `http://${this.address}`;
  }

  /** Starts it, again on the same port and the same ledger if it ran before. */
  async start() {
    const place = ["--listen", this.address, "--data", join(this.folder, "data")];
    const log = openSync(join(this.folder, "log"), "a");
    const child = spawn(named("SOLDONCE_PROGRAM"), [...this.command, ...place], {
      stdio: ["ignore", "pipe", log],
      env: { ...process.env, SOLDONCE_ADMIN_KEY: ADMIN_KEY },
    });
    this.process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const address = ADDRESS.exec(line)?.[1];
      if (!address) continue;
      this.address = address;
      child.stdout.resume();
      return;
    }
    throw new Error(`the server did not start; its log is ${join(this.folder, "log")}`);
  }

  /** Ends it in order, and has the ledger it leaves verified. */
  async stop() {
    const child = this.process;
    this.process = null;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    const ledger = ["verify", "--data", join(this.folder, "data")];
    await promisify(execFile)(named("SOLDONCE_PROGRAM"), ledger);
  }

  /**
   * A request of the organiser, or of the holder of the token.
   * @param {string} method @param {string} path @param {object} [body] @param {string} [token]
   */
  async ask(method, path, body, token = ADMIN_KEY) {
    const headers = {
      Authorization: `Bearer ${token}`,
      "Idempotency-Key": randomUUID(),
      ...(body && { "Content-Type": "application/json" }),
    };
    const reply = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) });
    return { status: reply.status, body: await reply.json() };
  }

  /** As `ask`, of which only the success will do. */
  async done(/** @type {Parameters<Server["ask"]>} */ ...request) {
    const { status, body } = await this.ask(...request);
    if (status >= 300) throw new Error(`${request[0]} ${request[1]}: ${JSON.stringify(body)}`);
    return body;
  }

  /**
   * A new event with an id of its own; four rows of ten seats unless it says otherwise.
   * @param {object} [changes] @param {object} [policy] @returns {Promise<string>} its id
   */
  async event(changes = {}, policy = {}) {
    const event = {
      id: `event-${randomUUID()}`,
      name: "An Evening of Tests",
      starts_at: new Date(Date.now() + 30 * DAY_MS).toISOString(),
      currency: "EUR",
      chart: { format: "grid", rows: 4, seats_per_row: 10, category: "Standard" },
      prices: { Standard: 4500 },
      policy,
      ...changes,
    };
    return (await this.done("POST", "/v1/events", event)).id;
  }

  /** Another shopper, without a page. */
  async rival() {
    const { session } = await (await fetch(`${this.url}/v1/sessions`, { method: "POST" })).json();
    return {
      session,
      /** @param {string} event @param {string[]} seats */
      hold: (event, ...seats) =>
        this.done(
          "POST",
          `/v1/events/${event}/holds`,
          { units: seats.map((seat) => ({ seat })) },
          session,
        ),
    };
  }
}
