// Firefox, driven by Marionette, the protocol that it has built in (Debian 12 has no geckodriver):
// commands of WebDriver as JSON over TCP, each text after its length.

import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { named } from "../server.mjs";
import { Driven } from "./driven.mjs";

const LISTENS = /Marionette\s+INFO\s+Listening on port (\d+)/;
const QUIET = { "marionette.port": 0, "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false };

export class Firefox extends Driven {
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
    browser.start(named("SOLDONCE_FIREFOX"), options);
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
    await this.patient();
    return this;
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
}
