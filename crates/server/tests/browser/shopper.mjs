// A shopper: a browser of their own, on the page under test. What the browser complains about on
// the way (errors, refused styles or scripts, failed requests that no test foresaw) fails the test.

import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { named } from "./server.mjs";

const DESK = { width: 1280, height: 800 };
// What is waited for comes on a slow and busy machine too; only what never comes takes so long.
const PATIENCE_MS = 120_000;

export class Browser {
  static async launch() {
    const launched = await chromium.launch({ executablePath: named("SOLDONCE_CHROMIUM"), timeout: PATIENCE_MS });
    return new Browser(launched);
  }

  /** @param {import("playwright-core").Browser} launched */
  constructor(launched) {
    this.launched = launched;
  }

  close() {
    return this.launched.close();
  }

  /**
   * A new shopper for one test, judged when it ends.
   * @param {import("node:test").TestContext} t @param {import("./server.mjs").Server} server
   * @param {import("playwright-core").BrowserContextOptions} [options]
   */
  async shopper(t, server, options = {}) {
    const context = await this.launched.newContext({
      baseURL: server.url,
      viewport: DESK,
      locale: "en-GB",
      timezoneId: "UTC",
      ...options,
    });
    t.after(() => context.close());
    return Shopper.in(t, context);
  }
}

export class Shopper {
  /** Another tab of a shopper's browser. */
  static async in(
    /** @type {import("node:test").TestContext} */ t,
    /** @type {import("playwright-core").BrowserContext} */ context,
  ) {
    const shopper = new Shopper(await context.newPage());
    t.after(() => shopper.judge());
    await shopper.watch();
    return shopper;
  }

  /** @param {import("playwright-core").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {string[]} */ this.complaints = [];
    /** What the browser reports of requests that a test makes fail. */
    /** @type {RegExp[]} */ this.foreseen = [];
  }

  async watch() {
    const { page, complaints } = this;
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(error.stack ?? String(error)));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    await page.addInitScript({ path: join(import.meta.dirname, "inside.js") });
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
  }

  /** The server will refuse with this status. @param {number} status */
  foresee(status) {
    this.foreseen.push(new RegExp(`^Failed to load resource: .* status of ${status} `));
  }

  foreseeNoServer() {
    this.foreseen.push(/^Failed to load resource: net::ERR_/);
  }

  judge() {
    const surprising = this.complaints.filter((said) => !this.foreseen.some((f) => f.test(said)));
    assert.deepEqual(surprising, [], "the browser complained");
  }

  /** @param {string} id */
  part(id) {
    return this.page.locator(`[data-part="${id}"]`);
  }

  /** Opens the page of an event and waits until its map is live. @param {string} event */
  async visit(event) {
    await this.page.goto(`/#/events/${event}`);
    await this.live(event);
  }

  /** @param {string} event */
  async live(event) {
    await this.until(
      (id) => {
        const state = window.__soldonce?.state();
        return state?.event === id && state.seq >= 0 && state.connection === "live";
      },
      event,
    );
    await this.settled();
  }

  state() {
    return this.page.evaluate(() => window.__soldonce.state());
  }

  /**
   * Waits until something is true in the page, and returns it.
   * @param {(asked: any) => any} condition @param {unknown} [asked]
   */
  async until(condition, asked) {
    try {
      const found = await this.page.waitForFunction(condition, asked);
      return await found.jsonValue();
    } catch (error) {
      // What the page thought instead is the first thing a developer wants to know.
      const state = await this.state().catch((e) => String(e));
      const said = this.complaints.join("; ");
      const story = `waited for ${condition} of ${asked}, but the page says ${JSON.stringify(state)}; ${said}`;
      throw new Error(story, { cause: error });
    }
  }

  settled() {
    return this.until(() => window.__soldonce.state()?.settled);
  }

  /** Waits until a part of the page reads so. @param {string} id @param {string|RegExp} wanted */
  async reads(id, wanted) {
    const isSo = ([id, wanted]) => {
      const part = document.querySelector(`[data-part="${id}"]`);
      if (!part?.checkVisibility()) return false;
      return typeof wanted === "string" ? part.innerText === wanted : wanted.test(part.innerText);
    };
    try {
      await this.until(isSo, [id, wanted]);
    } catch (error) {
      const texts = await this.part(id).allInnerTexts();
      throw new Error(`${id} should read ${wanted}, but reads ${JSON.stringify(texts)}`, { cause: error });
    }
  }

  /** Waits until the booking on the page is in a state. @param {string} state */
  bookingIs(state) {
    return this.page.locator(`[data-part="booking"][data-state="${state}"]`).waitFor();
  }

  /** @param {string} seat @param {string} state */
  seatIs(seat, state) {
    return this.until(
      ([id, wanted]) => window.__soldonce.seatState(id) === wanted,
      [seat, state],
    );
  }

  /** Presses seats on the map and waits for what becomes of it. @param {string[]} seats */
  async press(...seats) {
    for (const seat of seats) {
      const point = await this.pointOf(seat);
      await this.page.mouse.click(point.x, point.y);
    }
    await this.settled();
  }

  /** Where a seat is, once the map has its place on the page. @param {string} seat @returns {Promise<{x: number, y: number}>} */
  pointOf(seat) {
    return this.until((id) => window.__soldonce.seatPoint(id), seat);
  }

  /**
   * Has the page note what it knows after each change of the map; `past` tells it. Nothing is too
   * short to be seen.
   */
  async remember() {
    await this.page.evaluate(() => {
      window.past = [window.__soldonce.state()];
      const { dispatchEvent } = EventTarget.prototype;
      EventTarget.prototype.dispatchEvent = function (event) {
        const done = dispatchEvent.call(this, event);
        if (event.type === "change") window.past.push(window.__soldonce.state());
        return done;
      };
    });
  }

  /** How long frames of the map took, as figures. */
  async frames() {
    const { frames, work_ms, interval_ms } = await this.page.evaluate(() => window.__soldonce.frames());
    const told = ({ p50, p95, p99, max }) => ({ p50, p95, p99, max });
    return { frames, work_ms: told(work_ms), interval_ms: told(interval_ms) };
  }

  /** What is held, as sorted names. */
  async held() {
    const { hold } = await this.state();
    return (hold?.units ?? []).map((unit) => unit.seat ?? unit.area).sort();
  }

  /** Waits until the hold has exactly these units, in any order. @param {string[]} units */
  async holds(...units) {
    await this.until((/** @type {string} */ wanted) => {
      const state = window.__soldonce.state();
      const held = (state?.hold?.units ?? []).map((unit) => unit.seat ?? unit.area);
      return state?.settled && held.sort().join() === wanted;
    }, [...units].sort().join());
  }

  /** Confirms, and returns the booking's id from its page. */
  async confirm() {
    await this.part("confirm").click();
    return this.booking();
  }

  /** Begins a payment, and returns it as checkout did. */
  async begin() {
    const begun = this.page.waitForResponse(/\/checkout$/);
    await this.part("pay").click();
    const { payment } = await (await begun).json();
    await this.stage("choose");
    // The hold is read again after that.
    await this.settled();
    return payment;
  }

  /** Begins a payment and charges a test card of the demo. @param {string} card */
  async pay(card) {
    const payment = await this.begin();
    await this.part(`card-${card}`).click();
    return payment;
  }

  /** Pays, and returns the booking's id from its page. */
  async buy(card = "good") {
    await this.pay(card);
    return this.booking();
  }

  /** Waits until the payment stands there. @param {string} stage */
  stage(stage) {
    return this.page.locator(`[data-part="payment"][data-stage="${stage}"]`).waitFor();
  }

  /** Has the bank of a test card answer now. @param {any} payment @param {boolean} ok */
  async bankSays(payment, ok) {
    const status = await this.page.evaluate(
      async ([{ intent, client_secret }, ok]) => {
        const headers = { "Content-Type": "application/json" };
        const body = JSON.stringify({ client_secret, ok });
        const path = `/demo/payments/${intent}/answer`;
        return (await fetch(path, { method: "POST", headers, body })).status;
      },
      [payment, ok],
    );
    assert.equal(status, 200, "the bank was not asked");
  }

  async booking() {
    const id = await this.part("booking").getAttribute("data-booking");
    assert.match(id ?? "", /^bkg_/);
    return id;
  }
}

/**
 * Keeps the shopper's requests to a path on their way until something else has happened.
 * @param {Shopper} shopper @param {string} method @param {RegExp} path
 * @param {() => Promise<unknown>} happens
 */
export async function meanwhile(shopper, method, path, happens) {
  await shopper.page.route(path, async (route) => {
    if (route.request().method() === method) await happens();
    await route.continue();
  });
}
