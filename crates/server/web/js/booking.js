// The page of a booking: a ticket that stays true while money moves, and the way to give lines back.

import { Refused, asShopper, newKey, request } from "./api.js";
import { insist } from "./attempts.js";
import { calendarFile } from "./calendar.js";
import { clock } from "./clock.js";
import { amend, announce, button, el, icon } from "./dom.js";
import { dateAndTime, money, plural } from "./format.js";
import { storedBookingSecret } from "./holdstore.js";
import { bookingHash, bookingLink, rememberBooking, secretOfBooking } from "./links.js";
import { Plan } from "./plan.js";
import { words } from "./refusal.js";
import { backFor, facts, grouped, headline, isCalledOff, isOpen, late, lineElement, owns, sums } from "./ticket.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./ticket.js").TicketLine} TicketLine */
/** @typedef {{title: string, back: number, units: import("./wire.js").UnitRequest[]|null}} Question
 *  What is to be cancelled (`null`: all of it), and how much goes back. */

const UNSENT = "No answer yet. It is sent again by itself; keep this page open.";
const FREED = "The place is on sale again at once, and cannot be taken back for you.";
const LOOK_MS = [300, 700, 1000, 2000, 3000];
// What is settled may still be cancelled elsewhere, and its event called off.
const SETTLED_LOOK_MS = 60_000;

/** @param {string} id @param {string} [linked]  The secret of its link. */
export async function openBooking(id, linked) {
  const secret = linked ?? secretOfBooking(id) ?? storedBookingSecret(id);
  /** @type {Booking} */
  const booking = await asShopper({ route: "GET /v1/bookings/{booking}", id, secret });
  rememberBooking(id, booking.secret);
  // Names and places make the ticket readable; without them it is still a ticket.
  const [event, chart] = await Promise.all([
    request({ route: "GET /v1/events/{event}", id: booking.event }).catch(() => null),
    request({ route: "GET /v1/events/{event}/chart", id: booking.event, isLasting: true }).catch(() => null),
  ]);
  return new BookingPage(booking, event, chart && new Plan(chart, event?.prices ?? {}), secret);
}

class BookingPage {
  title = "Your booking";
  /** @type {Question|null} */ question = null;
  /** @type {import("./wire.js").Problem|null} */ problem = null;
  busy = false;
  /** Whether a cancelling was sent and has no answer. */ isUnsent = false;
  /** How often the booking was asked for. */ asked = 0;
  closed = false;
  looks = 0;
  spoken = "";
  /** @type {ReturnType<typeof setTimeout>|undefined} */ looking = undefined;

  /**
   * @param {Booking} booking @param {import("./wire.js").SaleEvent|null} event @param {Plan|null} plan
   * @param {string|undefined} secret  What opened it.
   */
  constructor(booking, event, plan, secret) {
    this.booking = booking;
    this.event = event;
    this.plan = plan;
    this.secret = booking.secret ?? secret;
    // What stands in the address bar leads back here from any device.
    this.hash = bookingHash(booking.id, booking.secret);
    this.copied = false;
    this.wasLate = booking.state === "expired" || late.has(booking.id);
    this.shown = "";
    this.ticket = el("article.ticket", { "data-part": "booking", "data-booking": booking.id });
    const map = `#/events/${encodeURIComponent(booking.event)}`;
    const back = el("a.button.primary", { href: map, "data-part": "back-to-map" }, "Back to the map");
    this.element = el("main.booking-page", {}, this.ticket, back);
    this.onVisible = () => document.hidden || this.look();
    document.addEventListener("visibilitychange", this.onVisible);
    this.refresh();
    this.follow();
  }

  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.onVisible);
    clearTimeout(this.looking);
  }

  /** Looks again while money moves, less often by and by; what is settled slowly, and none while hidden. */
  follow() {
    clearTimeout(this.looking);
    const isMoving = isOpen(this.booking);
    if (this.closed || (document.hidden && !isMoving)) return;
    const ms = isMoving ? LOOK_MS[Math.min(this.looks, LOOK_MS.length - 1)] : SETTLED_LOOK_MS;
    this.looks += 1;
    this.looking = setTimeout(() => this.look(), ms);
  }

  async look() {
    this.asked += 1;
    const number = this.asked;
    try {
      const { id } = this.booking;
      const booking = await asShopper({ route: "GET /v1/bookings/{booking}", id, secret: this.secret });
      const route = "GET /v1/events/{event}";
      if (!isOpen(booking)) this.event = await request({ route, id: booking.event }).catch(() => this.event);
      // An answer that was overtaken is older than what stands here.
      if (number === this.asked) this.take(booking);
    } catch {
      // It is asked again; what stands here was true a moment ago.
    }
    this.follow();
  }

  /** @param {Booking} booking */
  take(booking) {
    if (this.closed) return;
    const before = this.booking;
    this.booking = booking;
    if (booking.state === "expired") this.wasLate = true;
    if (before.state !== booking.state || before.payment?.state !== booking.payment?.state) {
      this.looks = 0;
    }
    this.refresh();
  }

  refresh() {
    const { booking, event, question, problem, busy, wasLate } = this;
    const { server_time, ...facts } = booking;
    const shown = [facts, event?.state, question, problem, busy, this.isUnsent, this.copied, this.mayCancel()];
    const subject = JSON.stringify(shown);
    if (subject === this.shown) return;
    this.shown = subject;
    const { title, text } = headline(booking, wasLate, event);
    const spoken = `${title}. ${text}`;
    this.ticket.dataset.state = booking.state;
    this.ticket.dataset.payment = booking.payment?.state ?? "";
    const isWithin = this.ticket.contains(document.activeElement);
    const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset.part;
    amend(this.ticket, ...this.parts(title, text));
    if (isWithin) this.focus(focused);
    if (spoken !== this.spoken) announce(spoken);
    this.spoken = spoken;
  }

  /** Where that is gone, or can do nothing now, the heading has the focus. @param {string} [name]  Its part. */
  focus(name) {
    const parts = [...this.ticket.querySelectorAll("a, button:enabled")];
    const part = parts.find((one) => name && /** @type {HTMLElement} */ (one).dataset.part === name);
    /** @type {HTMLElement|null} */ (part ?? this.ticket.querySelector("h1"))?.focus({ preventScroll: true });
  }

  /** @param {string} title @param {string} text @returns {import("./dom.js").Child[]} */
  parts(title, text) {
    const { booking, event, plan } = this;
    const good = booking.state === "confirmed" && !isCalledOff(booking, event);
    const when = dateAndTime(event?.starts_at);
    const lines = grouped(booking, plan).map((line) =>
      lineElement(line, booking.currency, this.mayCancel() ? () => this.askLine(line) : null),
    );
    return [
      el(
        "header",
        {},
        el(good ? "span.seal.good" : "span.seal", {}, icon(good ? "check" : "warn")),
        el("h1", { tabindex: "-1" }, title),
        el("p", {}, event?.name ?? booking.event),
        when && el("p.when", {}, when),
        text && el("p.story", { "data-part": "story" }, text),
      ),
      el("hr", { "aria-hidden": "true" }),
      el("ul.lines", {}, ...lines),
      ...sums(booking),
      facts(booking),
      this.linkPart(),
      this.cancelPart(),
    ];
  }

  /** The way back to this page, and what else a buyer takes home. */
  linkPart() {
    const { booking, event, secret } = this;
    if (!secret?.startsWith("bs_")) return false;
    const link = bookingLink(booking.id, secret);
    const hasDate = owns(booking) && !isCalledOff(booking, event) && event?.starts_at;
    return el(
      "section.keep",
      { "aria-label": "Keep this booking" },
      el("h2", {}, "Keep this link"),
      el("p.hint", {}, "It opens this booking on any device. Anyone who has it can see and cancel it."),
      el("a.booking-link", { href: link, "data-part": "booking-link" }, link),
      el(
        "div.actions",
        {},
        button("secondary", "copy-link", this.copied ? "Copied" : "Copy", () => this.copy(link)),
        hasDate && button("secondary", "calendar", "Calendar", () => this.saveDate(link)),
        button("secondary", "print", "Print", () => print()),
      ),
    );
  }

  /** @param {string} link */
  async copy(link) {
    // Pages without TLS have no clipboard; then the link is selected, to be copied by hand.
    try {
      await navigator.clipboard.writeText(link);
      this.copied = true;
      announce("The link is copied.");
      this.refresh();
    } catch {
      const shown = this.ticket.querySelector(".booking-link");
      if (shown) getSelection()?.selectAllChildren(shown);
    }
  }

  /** @param {string} link */
  saveDate(link) {
    const { booking, event, plan } = this;
    if (!event?.starts_at) return;
    const kept = booking.lines.filter(({ state }) => state === "sold");
    const lines = kept.map((line) => plan?.unitName(line) ?? line.seat ?? line.area ?? "");
    const entry = { id: booking.id, name: event.name, startsAt: event.starts_at, lines, link };
    const written = booking.confirmed_at ?? event.starts_at;
    const file = new Blob([calendarFile(entry, written)], { type: "text/calendar" });
    const href = URL.createObjectURL(file);
    el("a", { href, download: `${event.id}.ics` }).click();
    // The download has taken the file over by then.
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }

  /** Whether its owner may still give something back. */
  mayCancel() {
    const { booking, event } = this;
    const until = event?.policy.cancel_until;
    const isOver = until && clock.known && clock.until(until) === 0;
    return !isOver && booking.lines.some((line) => line.state === "sold");
  }

  cancelPart() {
    const { question, problem, busy } = this;
    if (question) return this.questionPart(question);
    if (!this.mayCancel() && !problem) return false;
    const until = this.event?.policy.cancel_until;
    return el(
      "div.cancel",
      {},
      problem && el("p.pay-note.bad", { "data-part": "cancel-refused" }, sentence(problem)),
      this.mayCancel() &&
        button("quiet", "cancel-all", "Cancel the booking", () => this.askAll(), busy),
      until && this.mayCancel() && el("p.hint", {}, `Possible until ${dateAndTime(until)}.`),
    );
  }

  /** @param {Question} question */
  questionPart({ title, back }) {
    const { booking, event, busy } = this;
    const goes = back > 0 ? `${money(back, booking.currency)} goes back the way it was paid. ` : "";
    return el(
      "section.cancel.question",
      { "data-part": "cancel-question", "aria-label": title },
      el("h2", {}, title),
      el("p", {}, goes, !isCalledOff(booking, event) && FREED),
      this.isUnsent && el("p.pay-note", { "data-part": "cancel-unsent" }, UNSENT),
      el(
        "div.actions",
        {},
        button("danger", "cancel-yes", busy ? "Cancelling…" : "Cancel it", () => this.cancel(), busy),
        button("secondary", "cancel-no", "Keep it", () => this.ask(null), busy),
      ),
    );
  }

  /** @param {TicketLine} line */
  askLine({ name, price, unit }) {
    this.ask({ title: `Cancel ${name}?`, back: backFor(this.booking, price), units: [unit] });
  }

  askAll() {
    const sold = this.booking.lines.filter((line) => line.state === "sold");
    const price = sold.reduce((sum, line) => sum + line.price, 0);
    const back = backFor(this.booking, price);
    const what = plural(sold.length, this.plan?.unitWord ?? "unit");
    this.ask({ title: `Cancel the booking of ${what}?`, back, units: null });
  }

  /** @param {Question|null} question */
  ask(question) {
    this.question = question;
    this.problem = null;
    this.refresh();
    this.focus(question ? "cancel-no" : "cancel-all");
    if (question) announce(question.title, "urgent");
  }

  async cancel() {
    const { question, booking } = this;
    if (!question || this.busy) return;
    this.busy = true;
    this.refresh();
    const body = question.units ? { units: question.units } : {};
    const rest = { id: booking.id, body, key: newKey(), secret: this.secret };
    const watch = {
      abandoned: () => this.closed,
      reached: () => this.noteUnsent(false),
      unreachable: () => this.noteUnsent(true),
      waiting: () => {},
    };
    try {
      // The key makes the repetition after a lost answer the same cancelling.
      const call = () => asShopper({ route: "POST /v1/bookings/{booking}/cancel", ...rest });
      this.booking = await insist(call, watch);
      this.asked += 1;
      this.looks = 0;
    } catch (error) {
      if (error instanceof Refused) this.problem = error.problem;
      else if (!this.closed) console.error(error);
    }
    this.busy = false;
    this.question = null;
    if (this.closed) return;
    // Should the look fail, what was answered is still told.
    this.refresh();
    this.ticket.querySelector("h1")?.focus({ preventScroll: true });
    await this.look();
  }

  /** @param {boolean} isUnsent */
  noteUnsent(isUnsent) {
    if (this.closed || isUnsent === this.isUnsent) return;
    this.isUnsent = isUnsent;
    if (isUnsent) announce(UNSENT, "urgent");
    this.refresh();
  }
}

/** @param {import("./wire.js").Problem} problem */
function sentence(problem) {
  const { title, text } = words(problem, (unit) => unit.seat ?? unit.area ?? "");
  return `${title}. ${text}`;
}
