// What a test does with a browser, in the commands of WebDriver: how they travel differs by browser.

import { spawn } from "node:child_process";

export const PATIENCE_MS = 120_000;
export const KEYS = { enter: "\uE007", right: "\uE014" };

export class Driven {
  /** @type {import("node:child_process").ChildProcess} */ process;

  /**
   * Sends a command by the name that Marionette has for it, and returns the value of its answer.
   * @param {string} _command @param {object} _parameters @returns {Promise<any>}
   */
  send(_command, _parameters) {
    throw new Error("a browser sends its commands by itself");
  }

  /** @param {string} program @param {string[]} options */
  start(program, options) {
    this.process = spawn(program, options, { stdio: ["ignore", "pipe", "ignore"] });
  }

  /** @param {NodeJS.Signals} [signal] */
  async close(signal = "SIGTERM") {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }

  patient() {
    return this.send("WebDriver:SetTimeouts", { script: PATIENCE_MS, pageLoad: PATIENCE_MS });
  }

  /** @param {string} url */
  goto(url) {
    return this.send("WebDriver:Navigate", { url });
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
    const css = `[data-part="${id}"]:enabled`;
    await this.until((css) => document.querySelector(css)?.checkVisibility(), css);
    const element = await this.send("WebDriver:FindElement", { using: "css selector", value: css });
    await this.send("WebDriver:ElementClick", { id: Object.values(element)[0] });
  }
}
