// The life of a hold as its shopper sees it: reload, expiry, more time, exchange, booking.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Shopper, meanwhile } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set();
const SHORT = { hold_ttl_ms: 3000, hold_max_ms: 60_000 };

test("a hold survives a reload with its seats, its id and its time", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3", "B-4");
  const { hold } = await shopper.state();
  await shopper.page.reload();
  await shopper.live(event);
  await shopper.holds("B-3", "B-4");
  const after = (await shopper.state()).hold;
  assert.deepEqual([after.id, after.expires_at], [hold.id, hold.expires_at]);
  await shopper.reads("countdown", /^(9:\d\d|10:00)$/);
  await shopper.reads("total", "€90.00");
});

test("a second tab of the same shopper shows the same hold", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3");
  const tab = await Shopper.in(t, shopper.page.context());
  await tab.visit(event);
  await tab.holds("B-3");
  assert.equal((await tab.state()).hold.id, (await shopper.state()).hold.id);

  // Booked in one tab, it is booked in the other, which goes to the booking by itself.
  const booking = await tab.confirm();
  assert.equal(await shopper.booking(), booking);
});

test("expiry ends the hold, frees the seat on the other screen, and offers the same again", async (t) => {
  const event = await stage.server.event({}, SHORT);
  const [shopper, other] = [await stage.shopper(t), await stage.shopper(t)];
  await other.visit(event);
  await shopper.visit(event);
  await other.remember();
  const answered = shopper.page.waitForResponse(/\/v1\/events\/[^/]+\/holds$/);
  await shopper.press("A-9");
  const hold = await (await answered).json();
  // The commit of the hold, and that of its end.
  await other.until(() => window.__soldonce.state().seq === 2);
  const held = await other.page.evaluate(() => window.past.map(({ counts }) => counts.held));
  assert.ok(held.includes(1), held.join());
  await other.seatIs("A-9", "free");
  const ended = shopper.part("ended");
  assert.equal(await ended.getAttribute("data-state"), "expired");
  assert.deepEqual(await shopper.held(), []);

  await stage.server.done("PATCH", `/v1/events/${event}`, { policy: { hold_ttl_ms: 60_000 } });
  await shopper.part("hold-again").click();
  await shopper.holds("A-9");
  assert.notEqual((await shopper.state()).hold.id, hold.id);
});

test("a hold that expired while the page was away is told after the reload", async (t) => {
  const event = await stage.server.event({}, SHORT);
  const [shopper, other] = [await stage.shopper(t), await stage.shopper(t)];
  await other.visit(event);
  await shopper.visit(event);
  // Should its time be over so soon, the page is gone before it is told.
  await shopper.page.route(/\/v1\/holds\//, () => {});
  const { x, y } = await shopper.pointOf("A-1");
  await shopper.page.mouse.click(x, y);
  await shopper.until(() => window.__soldonce.state().hold);
  await shopper.page.goto("about:blank");
  // The second commit of the event, after that of the hold.
  await other.until(() => window.__soldonce.state().seq === 2);
  await other.seatIs("A-1", "free");
  await shopper.page.unroute(/\/v1\/holds\//);
  await shopper.visit(event);
  assert.equal(await shopper.part("ended").getAttribute("data-state"), "expired");
});

/** Has the next reads of a hold refused, all of them by default. @param {Shopper} shopper @param {number} status @param {number} [times] */
async function refuseReads(shopper, status, times = Infinity) {
  shopper.foresee(status);
  let left = times;
  await shopper.page.route(/\/v1\/holds\/[^/]+$/, (route) => {
    if (route.request().method() !== "GET" || left === 0) return route.continue();
    left -= 1;
    const code = status === 503 ? "read_only" : "internal_error";
    const headers = status === 503 ? { "Retry-After": "1" } : undefined;
    return route.fulfill({ status, headers, contentType: "application/problem+json", body: JSON.stringify({ code }) });
  });
}

test("a reload while the server takes nothing for a moment keeps the hold", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3");
  const { hold } = await shopper.state();
  await refuseReads(shopper, 503);
  await shopper.page.reload();
  await shopper.part("waiting").waitFor();
  // Pressed while it is looked for, a seat joins it.
  const { x, y } = await shopper.pointOf("A-7");
  await shopper.page.mouse.click(x, y);
  await shopper.page.unroute(/\/v1\/holds\/[^/]+$/);
  await shopper.holds("A-7", "B-3");
  assert.equal((await shopper.state()).hold.id, hold.id);
});

test("a hold that cannot be read is looked for again when the shopper asks for that", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3");
  const { hold } = await shopper.state();
  await refuseReads(shopper, 500, 1);
  await shopper.page.reload();
  await shopper.part("refusal-retry").click();
  await shopper.holds("B-3");
  assert.equal((await shopper.state()).hold.id, hold.id);
  await shopper.part("refusal").waitFor({ state: "detached" });
});

test("a hold the organiser takes back says so", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await stage.server.done("POST", `/v1/holds/${hold.id}/revoke`, { reason: "a test" });
  assert.equal(await shopper.part("ended").getAttribute("data-state"), "revoked");
});

test("more time is given up to the cap, and the page says when there is none", async (t) => {
  const policy = { hold_ttl_ms: 60_000, hold_max_ms: 61_000 };
  const event = await stage.server.event({}, policy);
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await shopper.part("extend").click();
  await shopper.until(
    (before) => window.__soldonce.state().hold?.expires_at > before,
    hold.expires_at,
  );
  // The cap comes within the second: pressed until the page itself says that it is reached.
  await shopper.until(() => {
    const button = document.querySelector('[data-part="extend"]');
    if (!button.disabled) button.click();
    const { hold } = window.__soldonce.state();
    return hold.expires_at === hold.max_expires_at;
  });
  await shopper.until(() => document.querySelector('[data-part="extend"]').disabled);
  await shopper.reads("cap", /No more time/);
});

test("seats are exchanged on the map, within the same hold", async (t) => {
  const event = await stage.server.event();
  const [shopper, other] = [await stage.shopper(t), await stage.shopper(t)];
  await other.visit(event);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await shopper.press("C-7", "A-1", "C-8");
  await shopper.holds("C-7", "C-8");
  assert.equal((await shopper.state()).hold.id, hold.id);
  await other.seatIs("C-8", "held");
  await other.seatIs("A-1", "free");
});

test("what is chosen while the last seat is given back is not forgotten", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1");
  await meanwhile(shopper, "DELETE", /\/v1\/holds\//, async () => {
    const { x, y } = await shopper.pointOf("C-7");
    await shopper.page.mouse.click(x, y);
  });
  await shopper.press("A-1");
  await shopper.holds("C-7");
});

test("what another tab adds is shown before it is bought, what it drops stays dropped", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3");
  const tab = await Shopper.in(t, shopper.page.context());
  await tab.visit(event);
  await tab.press("B-4");
  await tab.holds("B-3", "B-4");
  shopper.foresee(409);
  await shopper.part("confirm").click();
  assert.equal(await shopper.part("refusal").getAttribute("data-code"), "stale_fence");
  await shopper.holds("B-3", "B-4");

  await tab.press("B-3");
  await tab.holds("B-4");
  await shopper.holds("B-4");
  await shopper.confirm();
  await shopper.reads("booking-total", "€45.00");
});

test("a change without an answer takes over what another tab added, and undoes nothing", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  await shopper.visit(event);
  await shopper.press("B-3");
  const tab = await Shopper.in(t, shopper.page.context());
  await tab.visit(event);
  let isLost = false;
  await shopper.page.route(/\/v1\/holds\/[^/]+$/, async (route) => {
    if (route.request().method() !== "PATCH" || isLost) return route.continue();
    isLost = true;
    await tab.press("B-4");
    return route.abort();
  });
  await shopper.press("B-5");
  await shopper.holds("B-3", "B-4", "B-5");
  await tab.seatIs("B-4", "held");
});

test("confirming books: the page of the booking, and the seats are ours on the map", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("D-4", "D-5");
  const booking = await shopper.confirm();
  await shopper.reads("booking-total", "€90.00");
  await shopper.reads("booking-booking", booking);
  await shopper.reads("booking", /Row D seat 4[^]*Row D seat 5/);

  await shopper.page.reload();
  assert.equal(await shopper.booking(), booking);
  await shopper.part("back-to-map").click();
  await shopper.live(event);
  await shopper.seatIs("D-4", "sold");
  assert.equal((await shopper.state()).hold, null);
  await shopper.part("legend").getByText("booked by you").waitFor();
});

test("a cancelled booking shows as cancelled, and its seats are on sale again", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("D-4");
  const booking = await shopper.confirm();
  await stage.server.done("POST", `/v1/bookings/${booking}/cancel`, {});
  await shopper.page.reload();
  await shopper.booking();
  await shopper.bookingIs("cancelled");
  await shopper.part("back-to-map").click();
  await shopper.live(event);
  await shopper.seatIs("D-4", "free");
});

test("another shopper's booking is as good as none", async (t) => {
  const event = await stage.server.event();
  const [shopper, other] = [await stage.shopper(t), await stage.shopper(t)];
  await shopper.visit(event);
  await shopper.press("D-4");
  const booking = await shopper.confirm();
  other.foresee(404);
  await other.page.goto(`/#/bookings/${booking}`);
  assert.equal(await other.part("failure").getAttribute("data-code"), "booking_not_found");
});

test("without its session a shopper keeps the hold by its secret", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await shopper.page.context().clearCookies();
  shopper.foresee(401);
  await shopper.press("A-2");
  await shopper.holds("A-1", "A-2");
  assert.equal((await shopper.state()).hold.id, hold.id);
  await shopper.confirm();
});

/** How to press something of the hold's card while another shopper changes the map. */
const PRESSED = {
  "a line's give-back button": {
    where: '[data-part="hold-units"] [data-unit="A-2"] button',
    comes: (shopper) => shopper.holds("A-1"),
  },
  "the clock of more time": {
    where: '[data-part="extend"] svg',
    comes: (shopper, hold) =>
      shopper.until((at) => window.__soldonce.state().hold?.expires_at > at, hold.expires_at),
  },
  "the seats of best together": {
    where: '[data-part="best-together"] svg',
    comes: (shopper, hold) =>
      shopper.until((id) => {
        const now = window.__soldonce.state();
        return now.settled && now.hold && now.hold.id !== id;
      }, hold.id),
  },
};

for (const [what, { where, comes }] of Object.entries(PRESSED)) {
  test(`a press on ${what} is not lost when the map changes under it`, async (t) => {
    const event = await stage.server.event();
    const [shopper, rival] = [await stage.shopper(t), await stage.server.rival()];
    await shopper.visit(event);
    await shopper.press("A-1", "A-2");
    const { hold, seq } = await shopper.state();
    await shopper.page.locator(where).hover();
    await shopper.page.mouse.down();
    await rival.hold(event, "D-9");
    await shopper.until((before) => window.__soldonce.state().seq > before, seq);
    await shopper.seatIs("D-9", "held");
    // What a change redraws is redrawn in a task of its own, begun before this one.
    await shopper.page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 0)));
    await shopper.page.mouse.up();
    await comes(shopper, hold);
  });
}
