// Paying in the demo: what each test card leads to, and that the seats follow the money.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Server } from "./server.mjs";
import { Shopper } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["demo"]);
/** Time enough to begin a payment, and to choose a card; the late one waits for the end of it. */
const SHORT = { hold_ttl_ms: 15_000, hold_max_ms: 60_000, payment_window_ms: 15_000 };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** @param {import("node:test").TestContext} t @param {string[]} seats @param {object} [policy] */
async function holding(t, seats, policy) {
  const event = await stage.server.event({}, policy);
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press(...seats);
  return { event, shopper };
}

test("a good card buys: the seats are sold, the money is taken", async (t) => {
  const { event, shopper } = await holding(t, ["D-4", "D-5"]);
  const booking = await shopper.buy("good");
  await shopper.reads("booking-total", "€90.00");
  await shopper.reads("booking-paid", "€90.00");
  await shopper.reads("booking-booking", booking);
  await shopper.part("back-to-map").click();
  await shopper.live(event);
  await shopper.seatIs("D-4", "sold");
  assert.equal((await shopper.state()).hold, null);
});

test("a declined card keeps the seats, and another one buys them by the same payment", async (t) => {
  const { shopper } = await holding(t, ["A-1"]);
  const { intent } = await shopper.pay("declined");
  await shopper.stage("again");
  await shopper.reads("declined", /Nothing was charged/);
  const { hold } = await shopper.state();
  assert.equal(hold.state, "pinned");
  const charged = shopper.page.waitForResponse(/\/demo\/payments\/[^/]+$/);
  await shopper.part("card-declined").click();
  assert.ok((await charged).url().endsWith(`/${intent}`));
  await shopper.stage("again");
  assert.deepEqual((await shopper.state()).hold, hold);
  const last = shopper.page.waitForRequest(/\/demo\/payments\//);
  await shopper.part("card-good").click();
  assert.ok((await last).url().endsWith(`/${intent}`));
  await shopper.booking();
  await shopper.bookingIs("confirmed");
});

test("after a decline a reload comes back to the cards", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"]);
  await shopper.pay("declined");
  await shopper.stage("again");
  await shopper.page.reload();
  await shopper.live(event);
  await shopper.stage("again");
  await shopper.part("card-challenged").click();
  await shopper.part("bank-yes").click();
  await shopper.bookingIs("confirmed");
});

test("seats whose payment failed are not booked", async (t) => {
  for (const fails of [["declined"], ["challenged", "bank-no"]]) {
    const { event, shopper } = await holding(t, ["A-1", "A-2"]);
    await shopper.pay(fails[0]);
    if (fails[1]) await shopper.part(fails[1]).click();
    await shopper.stage("again");
    await shopper.part("abandon").click();
    await shopper.part("release").click();
    await shopper.seatIs("A-1", "free");
    const listed = shopper.page.waitForResponse(/\/v1\/bookings$/);
    await shopper.page.reload();
    assert.equal((await (await listed).json()).bookings.length, 1);
    await shopper.live(event);
    assert.deepEqual((await shopper.state()).booked, []);
    const { x, y } = await shopper.pointOf("A-1");
    await shopper.page.mouse.move(x, y);
    await shopper.reads("tip", /free/);
  }
});

test("a declined card frees the seats at once where the event says so", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"], { on_payment_failure: "release" });
  const other = await stage.shopper(t);
  await other.visit(event);
  await shopper.pay("declined");
  const ended = shopper.part("ended");
  assert.equal(await ended.getAttribute("data-state"), "payment_failed");
  await other.seatIs("A-1", "free");
});

test("the bank asks whether it is the buyer: yes sells the seats", async (t) => {
  const { shopper } = await holding(t, ["A-1"]);
  await shopper.pay("challenged");
  await shopper.reads("bank", /Are you paying €45\.00\?/);
  await shopper.part("bank-yes").click();
  await shopper.bookingIs("confirmed");
});

test("the bank asks whether it is the buyer: no sells nothing, and another card may", async (t) => {
  const { shopper } = await holding(t, ["A-1"]);
  await shopper.pay("challenged");
  await shopper.part("bank-no").click();
  await shopper.stage("again");
  assert.deepEqual(await shopper.held(), ["A-1"]);
  await shopper.part("card-good").click();
  await shopper.bookingIs("confirmed");
});

test("a silent bank: the page says so, keeps the seats, and goes on by itself", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"]);
  const other = await stage.shopper(t);
  await other.visit(event);
  const payment = await shopper.pay("slow");
  await shopper.stage("silent");
  await shopper.reads("silent", /goes on by itself/);
  await shopper.reads("countdown", /^(9:\d\d|10:00)$/);
  await other.seatIs("A-1", "held");
  await shopper.bankSays(payment, true);
  await shopper.bookingIs("confirmed");
  await other.seatIs("A-1", "sold");
});

test("a reload in the middle of a payment comes back to it", async (t) => {
  const { event, shopper } = await holding(t, ["A-1", "A-2"]);
  const begun = await shopper.begin();
  const { hold } = await shopper.state();
  await shopper.page.reload();
  await shopper.live(event);
  await shopper.stage("choose");
  const after = (await shopper.state()).hold;
  assert.deepEqual([after.id, after.state, after.expires_at], [hold.id, "pinned", hold.expires_at]);

  await shopper.part("card-slow").click();
  await shopper.stage("silent");
  await shopper.page.reload();
  await shopper.live(event);
  await shopper.stage("silent");
  await shopper.bankSays(begun, true);
  await shopper.bookingIs("confirmed");
});

test("what the bank says while the page is away stands on the page that comes back", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"]);
  const payment = await shopper.pay("slow");
  await shopper.stage("silent");
  const away = await Shopper.in(t, shopper.page.context());
  await away.page.goto("/");
  await shopper.page.goto("about:blank");
  await away.bankSays(payment, true);
  await away.visit(event);
  await away.seatIs("A-1", "sold");
  await shopper.page.goto(`/#/events/${event}`);
  await shopper.bookingIs("confirmed");
});

test("going back gives the seats free to choose again, and to pay again", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"]);
  const other = await stage.shopper(t);
  await other.visit(event);
  await shopper.begin();
  // While it is being paid, the choice stands.
  await shopper.press("A-2");
  assert.equal((await shopper.state()).refusal, "payment_in_progress");
  await shopper.part("abandon").click();
  await shopper.part("pay").waitFor();
  await shopper.reads("cap", /^After a payment there is less time/);
  await shopper.page.locator("#say-polite").getByText("The seats are still yours, for 2 minutes.").waitFor();
  await shopper.press("A-1", "C-3");
  await shopper.holds("C-3");
  await other.seatIs("A-1", "free");
  await shopper.buy("good");
  await shopper.bookingIs("confirmed");
  await other.seatIs("C-3", "sold");
});

test("another window of the same shopper shows the payment, and may give it up", async (t) => {
  const { event, shopper } = await holding(t, ["A-1"]);
  await shopper.begin();
  const tab = await Shopper.in(t, shopper.page.context());
  await tab.visit(event);
  await tab.stage("elsewhere");
  await tab.part("abandon").click();
  await tab.part("pay").waitFor();
  await shopper.part("pay").waitFor();
  await tab.buy("good");
  await tab.bookingIs("confirmed");
  await shopper.bookingIs("confirmed");
});

test("one line is cancelled, then the rest, and the money goes back", async (t) => {
  const { event, shopper } = await holding(t, ["B-1", "B-2"]);
  const other = await stage.shopper(t);
  await other.visit(event);
  await shopper.buy("good");
  await shopper.part("booking-paid").waitFor();
  await shopper.part("cancel-Row B seat 1").click();
  await shopper.reads("cancel-question", /€45\.00 goes back/);
  await shopper.part("cancel-no").click();
  await shopper.part("cancel-question").waitFor({ state: "detached" });
  await shopper.part("cancel-Row B seat 1").click();
  await shopper.part("cancel-yes").click();
  await shopper.bookingIs("partly_cancelled");
  await other.seatIs("B-1", "free");
  await shopper.part("booking-sent-back").getByText("− €45.00").waitFor();
  await shopper.reads("booking-kept", "€45.00");
  await shopper.reads("booking-total", "€90.00");
  await shopper.reads("booking-given-back", "− €45.00");
  await shopper.reads("booking-paid", "€90.00");
  await shopper.reads("story", /€45\.00 was sent back/);

  await shopper.part("cancel-all").click();
  await shopper.part("cancel-yes").click();
  await shopper.bookingIs("cancelled");
  await other.seatIs("B-2", "free");
  await shopper.part("booking-sent-back").getByText("− €90.00").waitFor();
  await shopper.reads("story", /€90\.00 was sent back/);
  assert.equal(await shopper.part("cancel-all").count(), 0);
});

test("a seat is exchanged for two dearer ones, and both tickets say what was paid", async (t) => {
  const { event, shopper } = await holding(t, ["D-1"]);
  const first = await shopper.buy("good");
  await shopper.part("booking-paid").waitFor();
  const second = await shopper.page.evaluate(
    async ([event, booking]) => {
      const ask = async (/** @type {string} */ path, /** @type {object} */ body) => {
        const key = crypto.randomUUID();
        const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
        const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
        if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
        return reply.json();
      };
      const units = [{ seat: "D-2" }, { seat: "D-3" }];
      const hold = await ask(`/v1/events/${event}/holds`, { units });
      const exchange = { booking, release: [{ seat: "D-1" }] };
      const begun = await ask(`/v1/holds/${hold.id}/checkout`, { exchange });
      const { intent, client_secret } = begun.payment;
      await ask(`/demo/payments/${intent}`, { client_secret, card: "good" });
      // The provider's notice sells; until it is there, the first booking is what it was.
      for (;;) {
        const { state } = await (await fetch(`/v1/bookings/${begun.id}`)).json();
        if (state !== "pending_payment") return begun.id;
        await new Promise((after) => setTimeout(after, 50));
      }
    },
    [event, first],
  );
  await shopper.page.reload();
  await shopper.page.getByText("Exchanged", { exact: true }).waitFor();
  await shopper.reads("booking-carried", "− €45.00");
  assert.equal(await shopper.part("booking-coming-back").count(), 0);
  await shopper.page.evaluate((id) => (location.hash = `#/bookings/${id}`), second);
  await shopper.part("booking-credit").waitFor();
  await shopper.part("booking-paid").waitFor();
  await shopper.reads("booking-total", "€90.00");
  await shopper.reads("booking-credit", "€45.00");
  await shopper.reads("booking-paid", "€45.00");
});

// At once: all wait for times to end.
suite("late money", { concurrency: true }, () => {
  test("in the demo's shortest sale the late card shows its point within a minute", async (t) => {
    const shopper = await stage.shopper(t);
    await shopper.visit("last-minute");
    await shopper.part("best-together").click();
    await shopper.until(() => window.__soldonce.state().hold);
    await shopper.settled();
    await shopper.begin();
    const { hold } = await shopper.state();
    assert.ok(Date.parse(hold.expires_at) - Date.parse(hold.server_time) <= 40_000);
    await shopper.reads("card-late", /in Last Minute within 40 seconds/);
    await shopper.part("card-late").click();
    // No other shopper was there: the seats are still free when the money comes.
    await shopper.bookingIs("confirmed");
    const { now } = await shopper.until(() => window.__soldonce.time());
    assert.ok(now - Date.parse(hold.server_time) < 60_000, "its point is seen within a minute");
    await shopper.reads("story", /money came late, but the seats were still free/);
  });

  test("money that comes too late buys the seats if they are still free", async (t) => {
    const { shopper } = await holding(t, ["A-1"], SHORT);
    await shopper.pay("late");
    await shopper.bookingIs("confirmed");
    await shopper.part("booking-paid").waitFor();
  });

  test("money that comes too late goes back where the event says so", async (t) => {
    const { event, shopper } = await holding(t, ["A-1"], { ...SHORT, late_payment: "refund" });
    await shopper.pay("late");
    await shopper.bookingIs("refunded");
    await shopper.reads("story", /sent back in full/);
    await shopper.reads("booking-paid", "€45.00");
    await shopper.reads("booking-sent-back", "− €45.00");
    await shopper.part("back-to-map").click();
    await shopper.live(event);
    await shopper.seatIs("A-1", "free");
  });
});

test("what costs nothing is confirmed, and without test cards nothing is pinned that cannot be paid here", async (t) => {
  const event = await stage.server.event({ prices: { Standard: 0 } });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1");
  await shopper.confirm();
  await shopper.bookingIs("confirmed");

  const shop = await stage.shopper(t);
  const none = { provider: "stripe", demo_cards: [] };
  await shop.page.route("/v1/payments", (route) => route.fulfill({ json: none }));
  await shop.visit(await stage.server.event());
  await shop.press("A-1");
  await shop.part("elsewhere").waitFor();
  assert.equal(await shop.part("pay").isVisible(), false);
});

test("a shop has no desk, and the seats are kept while its provider is away", async (t) => {
  const keys = ["--stripe-key", "sk_test_nobody", "--stripe-webhook-secret", `whsec_${"0".repeat(24)}`];
  const nowhere = ["--stripe-url", "http://127.0.0.1:9"];
  const shop = await Server.start(["serve", "--shoppers", "open", ...keys, ...nowhere]);
  /** @type {import("./shopper.mjs").Shopper|undefined} */ let shopper;
  t.after(async () => {
    // A page that outlives its server complains.
    await shopper?.page.context().close();
    await shop.stop();
  });
  const desk = await shop.ask("POST", "/demo/payments/pi_1", { client_secret: "", card: "good" });
  assert.deepEqual([desk.status, desk.body.code], [404, "not_found"]);
  const { provider, demo_cards } = await shop.done("GET", "/v1/payments");
  assert.deepEqual([provider, demo_cards], ["stripe", []]);

  const event = await shop.event();
  shopper = await stage.browser.shopper(t, shop);
  shopper.foresee(503);
  // The page begins no payment that it cannot take; with test cards it would.
  const cards = { provider, demo_cards: [{ card: "good", name: "Good", about: "" }] };
  await shopper.page.route("/v1/payments", (route) => route.fulfill({ json: cards }));
  await shopper.visit(event);
  await shopper.press("A-1");
  await shopper.part("pay").click();
  assert.equal(await shopper.part("refusal").getAttribute("data-code"), "payment_unavailable");
  assert.deepEqual(await shopper.held(), ["A-1"]);
});

test("on a phone, by touch and by keyboard: nothing is cut off, and the focus follows", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t, PHONE);
  await shopper.visit(event);
  const point = await shopper.pointOf("B-5");
  await shopper.page.touchscreen.tap(point.x, point.y);
  await shopper.holds("B-5");
  await shopper.part("phone-bar").tap();
  await shopper.part("phone-bar").waitFor({ state: "hidden" });
  const { keyboard } = shopper.page;
  const reads = (/** @type {string} */ stage) =>
    shopper.until((wanted) => {
      const part = /** @type {any} */ (document.activeElement)?.closest('[data-part="payment"]');
      return part?.dataset.stage === wanted && !part.querySelector("button:disabled");
    }, stage);
  await shopper.until(() => /** @type {any} */ (document.activeElement)?.dataset.part === "pay");
  await keyboard.press("Enter");
  await reads("choose");
  const wide = () => document.documentElement.scrollWidth - innerWidth;
  assert.equal(await shopper.page.evaluate(wide), 0);
  await shopper.part("card-declined").tap();
  await reads("again");
  for (const key of ["Tab", "Tab", "Tab", "Enter"]) await keyboard.press(key);
  await reads("bank");
  for (const key of ["Tab", "Enter"]) await keyboard.press(key);
  await shopper.bookingIs("confirmed");
  await shopper.until(() => document.activeElement?.tagName === "H1");
  assert.equal(await shopper.page.evaluate(wide), 0);
});

test("what was paid before the demo was started again goes back all the same", async (t) => {
  const own = await Server.start(["demo"]);
  t.after(() => own.stop());
  const event = await own.event();
  const shopper = await stage.browser.shopper(t, own);
  shopper.foreseeNoServer();
  await shopper.visit(event);
  await shopper.press("A-1");
  await shopper.buy("good");
  await shopper.part("booking-paid").waitFor();
  await own.stop();
  await own.start();
  await shopper.page.reload();
  await shopper.part("cancel-all").click();
  await shopper.part("cancel-yes").click();
  await shopper.bookingIs("cancelled");
  await shopper.page.locator('[data-part="booking"][data-payment="refunded"]').waitFor();
});
