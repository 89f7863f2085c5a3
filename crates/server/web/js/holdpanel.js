// What is held: its units, its total, the time that is left by the server's clock, and what can
// be done with it: extend, confirm, release.

import { heldIn } from "./basket.js";
import { clock } from "./clock.js";
import { amend, announce, button, canFocus, el, icon, iconButton, setText, setWaiting, shape } from "./dom.js";
import { money, plural, remaining, roughly, spokenMoney } from "./format.js";
import { PayPanel } from "./paypanel.js";
import { canBuy, compromise, isPending, mustPay, wantedTotal } from "./selectors.js";

/** @typedef {import("./holding.js").Holding} Holding */
/** @typedef {import("./plan.js").Plan} Plan */

const TICK_MS = 200;
const HURRY_MS = 60_000;
const SPOKEN_AT_MS = [300_000, 60_000, 10_000];
const CHOOSE = "Choose a seat: it is held for you at once, and no one else can take it meanwhile.";
const CLOSED = "Nothing can be held here now.";
const ELSEWHERE = "This page takes no money: the shop that sent you here sells it. It is held for you meanwhile.";
const RING = 2 * Math.PI * 19;

export class HoldPanel {
  /** @param {Holding} holding @param {Plan} plan */
  constructor(holding, plan) {
    this.holding = holding;
    this.plan = plan;
    this.spokenUpTo = Infinity;
    this.askedAt = -Infinity;
    this.lines = el("ul.lines", { "data-part": "hold-units" });
    this.total = el("strong.total", { "data-part": "total" });
    this.time = el("span.time", { "data-part": "countdown", role: "timer", "aria-live": "off" });
    this.ring = ringOf();
    this.cap = el("p.hint", { "data-part": "cap" });
    this.compromise = el("p.pay-note", { "data-part": "compromise" });
    this.elsewhere = el("p.pay-note", { "data-part": "elsewhere" }, ELSEWHERE);
    this.extend = button("secondary", "extend", "", () => holding.press({ kind: "extend" }));
    this.confirm = button("primary", "confirm", "", () => holding.press({ kind: mustPay(holding.state) ? "pay" : "confirm" }));
    this.pay = new PayPanel(holding);
    this.release = button("quiet", "release", "", () => holding.release());
    this.empty = el("p.empty", {}, CHOOSE);
    this.until = el("strong", {}, "Held for you");
    const clockText = el("div.clock-text", {}, this.until, this.cap);
    const minor = el("div.minor", {}, this.extend, this.release);
    this.buttons = el("div.buttons", {}, this.confirm, minor);
    this.full = el(
      "div.full",
      {},
      el("div.clock-row", {}, el("div.clock", {}, this.ring.svg, this.time), clockText),
      this.compromise,
      this.lines,
      el("div.sum", {}, el("span", {}, "Total"), this.total),
      this.pay.element,
      this.elsewhere,
      this.buttons,
    );
    this.heading = el("h2", { tabindex: "-1" }, "Your hold");
    this.element = el(
      "section.card.hold",
      { "aria-label": "Your hold", "data-part": "hold" },
      this.heading,
      this.empty,
      this.full,
    );
    this.ticking = setInterval(() => this.tick(), TICK_MS);
  }

  close() {
    clearInterval(this.ticking);
  }

  /** @param {boolean} open  Whether anything is on sale. */
  showSale(open) {
    setText(this.empty, open ? CHOOSE : CLOSED);
  }

  refresh() {
    const { state } = this.holding;
    const { hold, wanted } = state;
    const doing = state.task?.kind;
    const any = Boolean(hold) || wanted.size > 0;
    this.empty.hidden = any;
    this.full.hidden = !any;
    this.element.classList.toggle("some", any);
    if (!any) {
      this.spokenUpTo = Infinity;
      this.pay.refresh();
      return;
    }
    this.refill();
    const lacking = compromise(state, this.plan);
    this.compromise.hidden = lacking === "";
    setText(this.compromise, lacking);
    const pending = isPending(state);
    const total = wantedTotal(state, this.plan);
    const shown = money(total, state.event.currency);
    setText(this.total, shown);
    const isOurs = canBuy(state, total);
    const toPay = mustPay(state);
    this.elsewhere.hidden = isOurs;
    this.confirm.hidden = !isOurs;
    this.confirm.disabled = !hold || pending || Boolean(doing) || (hold.state === "pinned" && !toPay);
    const paid = toPay && total > 0;
    this.confirm.dataset.part = paid ? "pay" : "confirm";
    const verb = paid ? `Pay · ${shown}` : total === 0 ? "Confirm" : `Confirm · ${shown}`;
    const busy = doing === "pay" ? "One moment…" : doing === "confirm" ? "Confirming…" : "";
    setText(this.confirm, busy || (pending ? "Holding…" : verb));
    this.buttons.hidden = this.pay.open;
    setText(this.until, state.payment ? "Kept while you pay" : "Held for you");
    this.pay.refresh();
    amend(this.extend, icon("clock"), doing === "extend" ? "Adding time…" : "More time");
    setText(this.release, "Release all");
    this.release.disabled = Boolean(doing) || wanted.size === 0;
    this.tick();
  }

  /** Redraws the lines; where the focused one is gone, the focus stays at its place in the list. */
  refill() {
    const buttons = () => [...this.lines.querySelectorAll("button")];
    const focused = document.activeElement;
    const place = buttons().indexOf(/** @type {any} */ (focused));
    amend(this.lines, ...this.lineElements());
    const left = buttons();
    if (place >= 0 && !focused?.isConnected) (left[Math.min(place, left.length - 1)] ?? this.release).focus();
  }

  lineElements() {
    const { wanted, payment } = this.holding.state;
    const held = heldIn(this.holding.state);
    const seats = [...new Set([...held.seats, ...wanted.seats])].map((id) => {
      const seat = this.plan.indexOf.get(id) ?? 0;
      const category = this.plan.categories[this.plan.category[seat]];
      const pending = held.seats.has(id) !== wanted.seats.has(id);
      const note = this.plan.kindOf(seat).join(" · ");
      const mayDrop = wanted.seats.has(id) && !payment;
      const drop = mayDrop ? () => this.holding.dispatch({ type: "toggle", seat: id }) : null;
      return this.line(id, this.plan.nameOf(seat), note, category, 1, pending, drop);
    });
    const areas = [...wanted.areas].map(([id, quantity]) => {
      const area = this.plan.areaOf(id);
      const category = this.plan.categories[area?.category ?? 0];
      const pending = held.quantity(id) !== quantity;
      const drop = payment ? null : () => this.holding.dispatch({ type: "area", area: id, quantity: 0 });
      return this.line(id, area?.label ?? id, category.name, category, quantity, pending, drop);
    });
    return [...seats, ...areas];
  }

  /**
   * @param {string} unit  Told in the line, so that lines of two units never look alike.
   * @param {string} name @param {string} note @param {import("./plan.js").PlanCategory} category
   * @param {number} quantity @param {boolean} pending @param {(() => void)|null} drop
   */
  line(unit, name, note, category, quantity, pending, drop) {
    const { currency } = this.holding.state.event;
    const spoken = `Give back ${quantity > 1 ? `${quantity} × ` : ""}${name}, ${spokenMoney(category.price, currency)}`;
    const label = quantity > 1 ? `${quantity} × ${name}` : name;
    return el(
      pending ? "li.pending" : "li",
      { "data-unit": unit },
      el(`span.swatch.tint-${category.tint}`, { "aria-hidden": "true" }),
      el("span.what", {}, el("strong", {}, label), el("small", {}, pending ? "asking…" : note)),
      el("span.price", {}, money(category.price * quantity, currency)),
      drop && iconButton("button.icon-button", "close", spoken, drop),
    );
  }

  tick() {
    const { hold, task, payment } = this.holding.state;
    const known = Boolean(hold) && clock.known;
    this.ring.svg.classList.toggle("waiting", !known);
    if (!hold || !known) {
      setText(this.time, "…");
      setText(this.cap, "");
      return;
    }
    const left = clock.until(hold.expires_at);
    const whole = Math.max(1, Date.parse(hold.expires_at) - Date.parse(hold.created_at));
    setText(this.time, remaining(left));
    this.ring.show(Math.min(1, left / whole));
    this.element.classList.toggle("hurry", left < HURRY_MS);
    const room = Date.parse(hold.max_expires_at) - Date.parse(hold.expires_at);
    const isAdding = task?.kind === "extend";
    this.extend.disabled = room <= 0 || (task !== null && !isAdding);
    setWaiting(this.extend, isAdding);
    const limit = roughly(clock.until(hold.max_expires_at));
    const more = room <= 0 ? "No more time can be added." : `More time: up to ${limit}.`;
    const paying = payment ? "No one else can take them meanwhile." : "";
    const short = this.pay.leftUntil === hold.expires_at ? "After a payment there is less time. " : "";
    setText(this.cap, paying || short + more);
    this.speak(left);
    // Only the server ends a hold: at zero it is asked, not assumed.
    if (left === 0 && performance.now() - this.askedAt > 1500) {
      this.askedAt = performance.now();
      this.holding.dispatch({ type: "recheck" });
    }
  }

  /** The time is spoken at a few marks only; a ticking live region would drown everything. */
  speak(/** @type {number} */ left) {
    const mark = SPOKEN_AT_MS.find((ms) => left <= ms && ms < this.spokenUpTo && left > ms - 3000);
    if (left > this.spokenUpTo + 5000) this.spokenUpTo = Infinity;
    if (mark === undefined) return;
    this.spokenUpTo = mark;
    announce(`${roughly(mark)} left to ${mustPay(this.holding.state) ? "pay" : "confirm"}.`, mark <= HURRY_MS ? "urgent" : "polite");
  }

  /** Puts the focus on what is to be done next. */
  focus() {
    if (this.pay.open) return this.pay.focus();
    const next = canFocus(this.confirm) ? this.confirm : this.heading;
    next.focus({ preventScroll: true });
  }

  /** One line for the bar at the foot of a phone. */
  summary() {
    const { state } = this.holding;
    const sum = money(wantedTotal(state, this.plan), state.event.currency);
    return `${plural(state.wanted.size, this.plan.unitWord)} · ${sum}`;
  }
}

/** The ring around the time; its dash is a presentation attribute, set from here. */
function ringOf() {
  const circle = { cx: 22, cy: 22, r: 19 };
  const track = shape("circle", { ...circle, class: "track" });
  const arc = shape("circle", { ...circle, class: "arc", "stroke-dasharray": RING });
  return {
    svg: shape("svg", { viewBox: "0 0 44 44", "aria-hidden": "true" }, track, arc),
    /** @param {number} share */
    show: (share) => arc.setAttribute("stroke-dashoffset", (RING * (1 - share)).toFixed(2)),
  };
}
