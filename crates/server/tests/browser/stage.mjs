// What every file of tests stands on: one server and one browser, ended with the file.

import { after, before } from "node:test";
import { Server } from "./server.mjs";
import { Browser } from "./shopper.mjs";

export class Stage {
  /** @type {Server} */ server;
  /** @type {Browser} */ browser;

  /** @param {string[]} [command] */
  static set(command) {
    const stage = new Stage();
    before(async () => {
      stage.server = await Server.start(command);
      stage.browser = await Browser.launch();
    });
    after(async () => {
      await stage.browser?.close();
      await stage.server?.stop();
    });
    return stage;
  }

  /**
   * A shopper with a browser of their own.
   * @param {import("node:test").TestContext} t
   * @param {import("playwright-core").BrowserContextOptions} [options]
   */
  shopper(t, options) {
    return this.browser.shopper(t, this.server, options);
  }
}
