// WebKitGTK, driven by WebDriver over HTTP.

import { existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { named } from "../server.mjs";
import { Driven, PATIENCE_MS } from "./driven.mjs";

const BROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";
/** Every process ends with the first one, which is ours to end. */
const APART = ["--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
/** The paths of commands below that of the session. @type {Record<string, (given: any) => string>} */
const PATHS = {
  "WebDriver:SetTimeouts": () => "timeouts",
  "WebDriver:Navigate": () => "url",
  "WebDriver:ExecuteAsyncScript": () => "execute/async",
  "WebDriver:PerformActions": () => "actions",
  "WebDriver:FindElement": () => "element",
  "WebDriver:ElementClick": ({ id }) => `element/${id}/click`,
};

export class WebKit extends Driven {
  address = "";

  /** @param {string} folder  For what it stores. */
  static async launch(folder) {
    mkdirSync(folder, { recursive: true });
    const webkit = new WebKit();
    const unpacked = resolve(dirname(named("SOLDONCE_WEBKIT")), "../debian");
    const port = await freePort();
    const script = join(import.meta.dirname, "webkit.sh");
    const root = existsSync(unpacked) ? unpacked : "";
    webkit.start("unshare", [...APART, "sh", script, root, String(port), folder]);
    webkit.address = `http://127.0.0.1:${port}/session`;
    const options = { binary: BROWSER, args: ["--automation"] };
    const alwaysMatch = { "webkitgtk:browserOptions": options };
    const { sessionId } = await webkit.first({ capabilities: { alwaysMatch } });
    webkit.address += `/${sessionId}`;
    await webkit.patient();
    return webkit;
  }

  // unshare hears no other signal while it waits; what it started ends with it.
  close() {
    return super.close("SIGKILL");
  }

  /** Asks for the session until the driver listens. @param {object} body */
  async first(body) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.ask("", body);
      } catch (/** @type {any} */ error) {
        if (this.process.exitCode !== null) throw new Error("the driver of WebKit ended", { cause: error });
        if (Date.now() > end || error.cause?.code !== "ECONNREFUSED") throw error;
        await new Promise((after) => setTimeout(after, 50));
      }
    }
  }

  /** @param {string} path @param {object} body */
  async ask(path, body) {
    const reply = await fetch(this.address + path, { method: "POST", body: JSON.stringify(body) });
    const { value } = await reply.json();
    if (!reply.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${value.error}: ${value.message}`);
    return value;
  }

  /** @param {string} command @param {object} parameters */
  send(command, parameters) {
    return this.ask(`/${PATHS[command](parameters)}`, parameters);
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => found(port));
    });
  });
}
