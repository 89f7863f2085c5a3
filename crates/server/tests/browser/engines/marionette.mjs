// Firefox, driven by Marionette, the protocol that it has built in (Debian 12 has no geckodriver):
// commands of WebDriver as JSON over TCP, each text after its length.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { named } from "../server.mjs";

const LISTENS = /Marionette\s+INFO\s+Listening on port (\d+)/;
const PATIENCE_MS = 120_000;
const QUIET = { "marionette.port": 0, "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false };
const ENTER = "\uE007";

export class Firefox {
  /** @type {Map<number, (answer: any[]) => void>} */ waiting = new Map();
  heard = Buffer.alloc(0);
  sent = 0;

  /** @param {string} profile  A folder for it. @param {Record<string, string|number|boolean>} [preferences] */
  static async launch(profile, preferences = {}) {
    mkdirSync(profile, { recursive: true });
    const lines = Object.entries({ ...QUIET, ...preferences });
    writeFileSync(`${profile}/user.js`, lines.map((pref) => `user_pref(${JSON.stringify(pref).slice(1, -1)});\n`).join(""));
    const browser = new Firefox();
    const options = ["--headless", "--no-remote", "--marionette", "--profile", profile];
    browser.process = spawn(named("SOLDONCE_FIREFOX"), options, { stdio: ["ignore", "pipe", "ignore"] });
    const said = [];
    for await (const line of createInterface({ input: browser.process.stdout })) {
      said.push(line);
      const port = LISTENS.exec(line)?.[1];
      if (port) return browser.attach(Number(port));
    }
    throw new Error(`Firefox did not start: ${said.join("\n")}`);
  }

  /** @param {number} port */
  async attach(port) {
    this.process.stdout.resume();
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("data", (part) => this.take(part));
    await this.send("WebDriver:NewSession", {});
    await this.send("WebDriver:SetTimeouts", { script: PATIENCE_MS, pageLoad: PATIENCE_MS });
    return this;
  }

  async close() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill();
    await ended;
  }

  /** @param {Buffer} part */
  take(part) {
    this.heard = Buffer.concat([this.heard, part]);
    for (;;) {
      const colon = this.heard.indexOf(":");
      const length = Number(this.heard.subarray(0, colon));
      if (colon < 0 || this.heard.length < colon + 1 + length) return;
      const answer = JSON.parse(this.heard.subarray(colon + 1, colon + 1 + length).toString());
      this.heard = this.heard.subarray(colon + 1 + length);
      // What it says of itself at first is no answer.
      if (Array.isArray(answer)) this.waiting.get(answer[1])?.(answer);
    }
  }

  /** @param {string} command @param {object} parameters @returns {Promise<any>} */
  async send(command, parameters) {
    this.sent += 1;
    const text = JSON.stringify([0, this.sent, command, parameters]);
    const answered = new Promise((resolve) => this.waiting.set(this.sent, resolve));
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    const [, , error, value] = await answered;
    if (error) throw new Error(`${command} ${JSON.stringify(parameters)}: ${error.error}: ${error.message}`);
    return value?.value ?? value;
  }

  /** @param {string} url */
  goto(url) {
    return this.send("WebDriver:Navigate", { url });
  }

  reload() {
    return this.send("WebDriver:Refresh", {});
  }

  /** Waits until something is so in the page, and returns it. @param {(...given: any[]) => any} condition @param {unknown[]} given */
  until(condition, ...given) {
    const script = `
      const [done, given] = [arguments[arguments.length - 1], [...arguments].slice(0, -1)];
      const look = () => {
        const found = (${condition})(...given);
        if (found) done(found);
        else setTimeout(look, 20);
      };
      look();`;
    return this.send("WebDriver:ExecuteAsyncScript", { script, args: given, newSandbox: false, sandbox: null });
  }

  /** Presses and lets go at a point of the window. @param {{x: number, y: number}} point */
  press({ x, y }) {
    const [at, button] = [{ x: Math.round(x), y: Math.round(y) }, { button: 0 }];
    const steps = [{ type: "pointerMove", ...at }, { type: "pointerDown", ...button }, { type: "pointerUp", ...button }];
    const mouse = { type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions: steps };
    return this.send("WebDriver:PerformActions", { actions: [mouse] });
  }

  /** Types keys one after the other. @param {string[]} keys */
  type(...keys) {
    const steps = keys.flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]);
    return this.send("WebDriver:PerformActions", { actions: [{ type: "key", id: "keys", actions: steps }] });
  }

  /** Presses a button with the mouse, once it can be pressed. @param {string} id */
  async click(id) {
    const css = `[data-testid="${id}"]:enabled`;
    await this.until((css) => document.querySelector(css)?.checkVisibility(), css);
    const element = await this.send("WebDriver:FindElement", { using: "css selector", value: css });
    await this.send("WebDriver:ElementClick", { id: Object.values(element)[0] });
  }
}

export const KEYS = { enter: ENTER, right: "\uE014" };
