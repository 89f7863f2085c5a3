// The page of one event: fetches event and chart, puts map, ways of choosing and hold next to each
// other, and passes every change on to those who show it.

import { asAnyone, asShopper, hadSession, listAll } from "./api.js";
import { heldIn } from "./basket.js";
import { Areas, BestTogether, Legend } from "./choosing.js";
import { clock } from "./clock.js";
import { connectionPill } from "./connection.js";
import { announce, canFocus, el, icon, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { count, dateAndTime, left, money, plural, remaining } from "./format.js";
import { HoldPanel } from "./holdpanel.js";
import { Holding } from "./holding.js";
import { HELD, Inventory } from "./inventory.js";
import { bookingHash } from "./links.js";
import { MapView } from "./mapview.js";
import { Notices } from "./notices.js";
import { PhoneBar } from "./phonebar.js";
import { Plan } from "./plan.js";
import { saleOf } from "./sale.js";
import { wantedTotal } from "./selectors.js";
import { owns } from "./ticket.js";

/** @typedef {import("./wire.js").SaleEvent} SaleEvent */

const FOREIGN_CHANGE_MS = 1500;

/** @param {string} id @param {(hash: string) => void} go */
export async function openHall(id, go) {
  const [event, chart, payments] = await Promise.all([
    asAnyone({ route: "GET /v1/events/{event}", id }),
    asAnyone({ route: "GET /v1/events/{event}/chart", id, isLasting: true }),
    asAnyone({ route: "GET /v1/payments" }),
  ]);
  return new Hall(event, chart, payments, go);
}

export class Hall {
  /**
   * @param {SaleEvent} event @param {import("./wire.js").Chart} chart
   * @param {import("./wire.js").Payments} payments @param {(hash: string) => void} go
   */
  constructor(event, chart, payments, go) {
    this.event = event;
    this.title = event.name;
    this.plan = new Plan(chart, event.prices);
    this.inventory = new Inventory(this.plan);
    this.holding = new Holding(event, this.inventory, payments);
    this.feed = new Feed(event.id, this.inventory);
    this.map = new MapView(this.plan, this.inventory, this.holding, (area) =>
      this.areas.point(area),
    );
    this.legend = new Legend(this.plan, this.inventory, event.currency, (c) =>
      this.map.painter.emphasise(c),
    );
    this.best = new BestTogether(this.plan, this.holding, (seat) => this.map.bringIntoView(seat));
    this.areas = new Areas(this.plan, this.inventory, this.holding);
    this.panel = new HoldPanel(this.holding, this.plan);
    this.notices = new Notices(this.holding, this.plan, (seats, covered) =>
      this.map.offer(seats, covered),
    );
    this.pill = connectionPill(this.feed, this.holding);
    this.scheduled = false;
    /** @type {import("./sale.js").Sale|undefined} */ this.sale = undefined;
    this.wasHeld = 0;
    this.wasAway = false;
    /** @type {ReturnType<typeof setTimeout>|undefined} */ this.recheckTimer = undefined;
    this.saleNote = el("p.sale-note", { "data-part": "sale-note", hidden: true });
    this.heading = el("h1", { tabindex: "-1" });
    this.whenNote = el("span");
    this.freeNote = el("span", { "data-part": "free-count" });
    this.bar = new PhoneBar(this.panel);
    this.element = this.build();
    this.onVisible = () => this.cameBack();
    this.slow = setInterval(() => this.refreshSale(), 1000);
    /** What of the page had the focus last, and its card. */
    this.focused = /** @type {{part: Element, card: Element|null}|null} */ (null);
    this.listen(go);
    this.start();
  }

  build() {
    const { event } = this;
    this.describe();
    const back = el("a.back", { href: "#/", "aria-label": "All events" }, icon("back"));
    const about = el("div", {}, this.heading, el("p.when", {}, this.whenNote, this.freeNote));
    const { left, right, top, bottom } = this.plan.bounds;
    const frame = el(
      "div.map-frame",
      {},
      this.map.element,
      this.pill.element,
      this.notices.element,
    );
    frame.style.setProperty("--hall-aspect", String((bottom - top) / (right - left)));
    const cards = [this.panel, this.areas, this.legend, this.best].map((card) => card.element);
    return el(
      "main.hall",
      { "data-part": "hall", "data-event": event.id },
      el("header.hall-head", {}, back, about),
      this.saleNote,
      el(
        "div.hall-body",
        {},
        frame,
        el("aside.side", { "aria-label": "Choosing and hold" }, ...cards),
      ),
      this.bar.element,
    );
  }

  /** @param {(hash: string) => void} go */
  listen(go) {
    this.inventory.addEventListener("change", () => {
      this.schedule();
      this.watchOwn();
    });
    this.holding.addEventListener("change", () => this.schedule());
    this.element.addEventListener("focusin", ({ target }) => {
      const part = /** @type {Element} */ (target);
      this.focused = { part, card: part.closest("section.card") };
    });
    this.feed.addEventListener("state", () => this.feedChanged());
    this.feed.addEventListener("event", (e) => {
      this.setEvent(/** @type {CustomEvent} */ (e).detail);
    });
    this.holding.addEventListener("booked", (e) => {
      go(bookingHash(/** @type {CustomEvent} */ (e).detail));
    });
    document.addEventListener("visibilitychange", this.onVisible);
  }

  describe() {
    const when = dateAndTime(this.event.starts_at);
    setText(this.heading, this.event.name);
    setText(this.whenNote, when && `${when} · `);
  }

  /** The event was read anew: its terms may have changed. @param {SaleEvent} event */
  setEvent(event) {
    this.event = event;
    this.describe();
    this.holding.dispatch({ type: "terms", event });
    this.refreshSale();
    this.schedule();
  }

  /** A page that stays visible hears of the machine's sleep by its connection alone. */
  feedChanged() {
    const { state } = this.feed;
    if (this.wasAway && state === "live") this.cameBack();
    this.wasAway = state === "polling" || state === "lost";
  }

  cameBack() {
    if (document.hidden) return;
    // A laptop that slept: elapsed time may not have been counted.
    clock.distrust();
    this.reread();
    this.holding.dispatch({ type: "recheck" });
  }

  /** Asks for the event again: the time, and whether it is still on sale. */
  async reread() {
    const before = this.event;
    try {
      const event = await asAnyone({ route: "GET /v1/events/{event}", id: this.event.id });
      // The feed may have told of newer terms meanwhile.
      if (this.event === before) this.setEvent(event);
    } catch {
      // What was read before stands.
    }
  }

  async start() {
    this.refresh();
    // Not after the snapshot: until then a seat could be chosen beside the earlier hold.
    this.holding.send();
    await this.feed.resync();
    this.refreshSale();
    await this.showBooked();
  }

  close() {
    clearInterval(this.slow);
    clearTimeout(this.recheckTimer);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.holding.close();
    this.feed.close();
    this.map.close();
    this.panel.close();
    this.notices.close();
    this.pill.close();
    this.bar.close();
  }

  /** Seats of our own earlier bookings are shown as ours. Nice to have: failing is silent. */
  async showBooked() {
    if (!hadSession()) return;
    try {
      const bookings = await listAll(asShopper, "GET /v1/bookings");
      for (const booking of bookings) {
        if (booking.event !== this.event.id || !owns(booking)) continue;
        for (const line of booking.lines) {
          if (line.seat && line.state === "sold") this.map.booked.add(line.seat);
        }
      }
      this.schedule();
    } catch {
      // The map is complete without it.
    }
  }

  /** One of our held seats is not, by the feed: the hold was ended elsewhere. Ask, once. */
  watchOwn() {
    if (!this.ownLooksLost() || this.recheckTimer) return;
    this.recheckTimer = setTimeout(() => {
      this.recheckTimer = undefined;
      if (this.ownLooksLost()) this.holding.dispatch({ type: "recheck" });
    }, FOREIGN_CHANGE_MS);
  }

  ownLooksLost() {
    for (const id of heldIn(this.holding.state).seats) {
      const seat = this.plan.indexOf.get(id);
      if (seat !== undefined && this.inventory.state[seat] !== HELD) return true;
    }
    return false;
  }

  /** Many changes, one refresh: at the next frame. */
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      this.refresh();
    }, 0);
  }

  refresh() {
    const { holding, inventory } = this;
    this.map.refreshLooks();
    this.legend.refresh(this.map.booked.size > 0);
    this.areas.refresh();
    this.best.refresh();
    this.panel.refresh();
    this.notices.refresh();
    this.pill.refresh();
    const counts = inventory.counts();
    const word = this.best.open ? "free" : "in all";
    const free = counts.free > 0 ? `${count(counts.free)} ${word}` : left(counts);
    setText(this.freeNote, inventory.seq < 0 ? "loading…" : free);
    this.bar.refresh(holding.state.wanted.size > 0);
    this.keepFocus();
    this.sayHold();
  }

  /** What had the focus is gone, hidden or disabled: the heading of its card has it then, or that of the hold. No
   *  button: a key that is still pressed must not choose anything. */
  keepFocus() {
    if (!this.focused) return;
    const { part, card } = this.focused;
    const { activeElement } = document;
    const isElsewhere = activeElement && activeElement !== document.body && activeElement !== part;
    if (isElsewhere || canFocus(part)) return;
    const heading = card?.isConnected ? card.querySelector("h2") : null;
    (heading ?? this.panel.heading).focus({ preventScroll: true });
  }

  /** Speaks a finished change of the hold once. */
  sayHold() {
    const { state, settled } = this.holding;
    const size = state.hold?.units.length ?? 0;
    if (!settled || size === this.wasHeld) return;
    if (size > this.wasHeld)
      announce(
        `Held: ${plural(size, this.plan.unitWord)}, ${money(wantedTotal(state, this.plan), this.event.currency)} in all.`,
      );
    else if (size > 0) announce(`Given back. ${plural(size, this.plan.unitWord)} still held.`);
    else if (!state.ended) announce("You hold nothing now.");
    this.wasHeld = size;
  }

  refreshSale() {
    const { event } = this;
    const opens = event.policy.sale_opens_at;
    const sale = saleOf(event);
    let note = sale === "open" ? "" : "The sale has closed.";
    if (sale === "cancelled") note = "This event was cancelled. Nothing is sold any more.";
    else if (opens && sale === "soon") {
      const wait = clock.known ? `, in ${remaining(clock.until(opens))}` : "";
      note = `The sale opens on ${dateAndTime(opens)}${wait}.`;
    }
    // The change is told, not each second of the wait.
    if (this.sale && sale !== this.sale) announce(note || "The sale is open.");
    this.sale = sale;
    this.saleNote.hidden = note === "";
    setText(this.saleNote, note);
    this.showSale(note === "");
    // What hides by the clock alone.
    this.keepFocus();
  }

  /** What is not on sale does not look as if it were. @param {boolean} open */
  showSale(open) {
    if (this.best.open === open) return;
    this.best.open = open;
    this.areas.open = open;
    this.panel.showSale(open);
    this.map.showSale(open);
    this.schedule();
  }
}
