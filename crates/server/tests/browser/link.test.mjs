// The way back to a booking: its link, on another device and after the session; and what is one's own,
// from every page.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set();

async function booked(t, ...seats) {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press(...seats);
  const booking = await shopper.confirm();
  const link = await shopper.part("booking-link").getAttribute("href");
  return { event, shopper, booking, link };
}

test("the link of a booking opens it on another device, and is asked for by no server", async (t) => {
  const { shopper, booking, link } = await booked(t, "B-3", "B-4");
  // It stands in the address bar, behind the hash.
  await shopper.page.waitForURL(link);
  const { hash, origin } = new URL(link);
  const secret = hash.split("/").at(-1);
  assert.match(secret, /^bs_[0-9a-z]{26}$/);

  const other = await stage.shopper(t);
  /** @type {string[]} */ const asked = [];
  other.page.on("request", (request) => asked.push(request.url()));
  await other.page.goto(link);
  assert.equal(await other.booking(), booking);
  await other.bookingIs("confirmed");
  assert.ok(asked.length > 3);
  const leaking = asked.filter((url) => url.replace(/#.*/, "").includes(secret));
  assert.deepEqual(leaking, []);
  assert.ok(asked.every((url) => url.startsWith(origin)), asked.join());

  // The other device remembers it: also without the link, and it may give a line back.
  await other.page.goto("/");
  await other.part("mine-link").click();
  await other.part("mine-booking").click();
  await other.part("cancel-Row B seat 3").click();
  await other.part("cancel-yes").click();
  await other.bookingIs("partly_cancelled");
  await other.reads("booking-kept", "€45.00");
  await other.reads("booking-given-back", "− €45.00");
  await other.reads("story", /1 place is still yours, 1 was given back/);
});

test("the buyer comes back without the session, and finds the booking under its link", async (t) => {
  const { shopper, booking, link } = await booked(t, "A-1");
  await shopper.page.context().clearCookies();
  await shopper.page.evaluate(() => sessionStorage.clear());
  shopper.foresee(401);
  await shopper.page.goto("about:blank");
  await shopper.page.goto(link);
  assert.equal(await shopper.booking(), booking);
});

test("a link with another secret opens nothing", async (t) => {
  const { link } = await booked(t, "A-1");
  const other = await stage.shopper(t);
  other.foresee(404);
  await other.page.goto(link.replace(/bs_.*/, `bs_${"0".repeat(26)}`));
  assert.equal(await other.part("failure").getAttribute("data-code"), "booking_not_found");
});

test("holds and bookings are found again from every page", async (t) => {
  const { event, shopper, booking } = await booked(t, "A-1");
  await shopper.visit(event);
  await shopper.press("C-5");
  await shopper.holds("C-5");
  for (const page of ["/", `/#/events/${event}`, `/#/bookings/${booking}`]) {
    await shopper.page.goto(page);
    await shopper.part("mine-link").click();
    await shopper.reads("mine-hold", /An Evening of Tests[^]*1 place[^]*\d:\d\d/);
    await shopper.reads("mine-booking", /An Evening of Tests[^]*It is yours/);
  }
  await shopper.part("mine-hold").click();
  await shopper.live(event);
  await shopper.holds("C-5");
});

test("a ticket that is looked at again tells that its event was called off", async (t) => {
  const { event, shopper } = await booked(t, "A-1");
  await shopper.part("calendar").waitFor();
  await stage.server.done("POST", `/v1/events/${event}/cancel`, {});
  await shopper.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await shopper.page.getByRole("heading", { name: "This event was cancelled" }).waitFor();
  assert.equal(await shopper.part("calendar").isVisible(), false);
});

test("a booking goes into the calendar, with its seats and its link", async (t) => {
  const { shopper, link } = await booked(t, "A-1");
  const download = shopper.page.waitForEvent("download");
  await shopper.part("calendar").click();
  const file = await readFile(await (await download).path(), "utf8");
  assert.ok(file.split("\r\n").every((line) => Buffer.byteLength(line) <= 75), file);
  const whole = file.replaceAll("\r\n ", "");
  assert.match(whole, /^BEGIN:VCALENDAR\r\n[^]*DTSTART:\d{8}T\d{6}Z\r\nSUMMARY:An Evening of Tests\r\n/);
  assert.ok(whole.includes(`URL:${link}\r\n`) && whole.includes("Row A seat 1"), whole);
});

test("a booking of an event that is not listed has its name", async (t) => {
  const shopper = await stage.shopper(t);
  await shopper.visit(await stage.server.event({}, { listed: false }));
  await shopper.press("A-1");
  await shopper.confirm();
  await shopper.part("mine-link").click();
  await shopper.reads("mine-booking", /An Evening of Tests/);
});

test("a link with a stray percent sign opens the list of events", async (t) => {
  await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.page.goto("/#/events/%");
  await shopper.part("event-card").first().waitFor();
});

test("a booking that comes late leaves the address of another page alone", async (t) => {
  const { shopper, booking } = await booked(t, "A-1");
  await shopper.page.goto("/");
  await shopper.part("event-list").waitFor();
  let answer = () => {};
  const asked = shopper.page.waitForRequest(/\/v1\/bookings\/[^/]+$/);
  const answers = new Promise((/** @type {(value?: unknown) => void} */ go) => (answer = go));
  await shopper.page.route(/\/v1\/bookings\/[^/]+$/, async (route) => {
    await answers;
    await route.continue();
  });
  await shopper.page.evaluate((id) => (location.hash = `#/bookings/${id}`), booking);
  await asked;
  await shopper.page.evaluate(() => (location.hash = "#/"));
  await shopper.part("event-list").waitFor();
  const answered = shopper.page.waitForResponse(/\/v1\/events\/[^/]+$/);
  answer();
  await answered;
  await shopper.page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 0)));
  assert.equal(new URL(shopper.page.url()).hash, "#/");
});

test("a cancelling that was answered is told, though the booking cannot be read after it", async (t) => {
  const { shopper } = await booked(t, "A-1");
  shopper.foresee(503);
  await shopper.page.route(/\/v1\/bookings\/[^/]+$/, (route) => {
    const body = JSON.stringify({ code: "read_only" });
    return route.fulfill({ status: 503, contentType: "application/problem+json", body });
  });
  await shopper.part("cancel-all").click();
  await shopper.part("cancel-yes").click();
  await shopper.bookingIs("cancelled");
  await shopper.part("cancel-question").waitFor({ state: "detached" });
});

test("a cancelling that gets no answer says so, and goes on by itself", async (t) => {
  const { shopper } = await booked(t, "A-1");
  shopper.foreseeNoServer();
  await shopper.part("cancel-all").click();
  await shopper.page.context().setOffline(true);
  await shopper.part("cancel-yes").click();
  await shopper.reads("cancel-unsent", /sent again by itself/);
  await shopper.page.context().setOffline(false);
  await shopper.bookingIs("cancelled");
});
