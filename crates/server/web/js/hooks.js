// What a browser test may hold on to: `window.__soldonce`. Stable, and of no use to the page.

import { clock } from "./clock.js";

/** @typedef {import("./hall.js").Hall} Hall */

/** @type {Hall|null} */
let hall = null;

/** @param {Hall} opened */
export function exposeHall(opened) {
  hall = opened;
}

/** @param {Hall} closed */
export function withdrawHall(closed) {
  if (hall === closed) hall = null;
}

/**
 * Where a seat can be clicked, in client coordinates. Moves the map at once if the seat is out of
 * sight or too small to be hit; null where there is no such seat, or the map has no size yet.
 * @param {string} id
 */
function seatPoint(id) {
  if (!hall) return null;
  const seat = hall.plan.indexOf.get(id);
  const { camera, canvas, painter } = hall.map;
  if (seat === undefined || camera.width <= 1) return null;
  const box = canvas.getBoundingClientRect();
  const chartX = hall.plan.xs[seat];
  const chartY = hall.plan.ys[seat];
  const inside = (/** @type {number} */ x, /** @type {number} */ y) =>
    x > 8 && y > 8 && x < camera.width - 8 && y < camera.height - 8;
  // A finger takes a smaller seat only by its second touch.
  const [least, pitch] = matchMedia("(pointer: coarse)").matches ? [24, 31] : [14, 22];
  const small = hall.plan.seatSide * camera.scale < least;
  if (small || camera.gliding || !inside(camera.toScreenX(chartX), camera.toScreenY(chartY))) {
    camera.jumpTo(chartX, chartY, Math.max(camera.scale, pitch / hall.plan.pitch));
    painter.request();
  }
  return { x: box.left + camera.toScreenX(chartX), y: box.top + camera.toScreenY(chartY) };
}

/** Everything a test may ask about, as plain values. */
function state() {
  if (!hall) return null;
  const { event, inventory, holding, feed, map } = hall;
  return {
    event: event.id,
    seq: inventory.seq,
    connection: feed.state,
    counts: inventory.counts(),
    areas: Object.fromEntries(inventory.areas),
    hold: holding.hold && { ...holding.hold, secret: undefined },
    wanted: holding.wanted.requests(),
    settled: holding.settled,
    trouble: holding.trouble,
    refusal: holding.refusal?.problem.code ?? null,
    ended: holding.ended?.state ?? null,
    open: map.painter.open,
    booked: [...map.booked],
    pinned: [...map.painter.rows.pinned],
    scale: map.camera.scale,
  };
}

/** The ledger's state of one seat as the page knows it. @param {string} id */
function seatState(id) {
  const seat = hall?.plan.indexOf.get(id);
  if (!hall || seat === undefined) return null;
  return ["free", "held", "sold", "blocked"][hall.inventory.state[seat]];
}

/** A seat's edge in CSS pixels. */
const seatSide = () => (hall ? hall.plan.seatSide * hall.map.camera.scale : null);

/** Where seats are in client coordinates as the map is, and how it names zones and areas. */
function drawn() {
  if (!hall) return null;
  const { plan, map } = hall;
  const { camera, canvas } = map;
  const { left, top } = canvas.getBoundingClientRect();
  const seats = plan.ids.map((id, k) => ({
    id,
    x: left + camera.toScreenX(plan.xs[k]),
    y: top + camera.toScreenY(plan.ys[k]),
  }));
  return { seats, names: map.painter.backdrop.names.shown() };
}

/** Whether the map has nothing left to draw. */
const atRest = () => hall !== null && hall.map.painter.scheduled === 0;

/** The server's time as the page knows it, and how far off that may be, in milliseconds. */
const time = () => (clock.known ? { now: clock.now(), spread: clock.spread } : null);

/** Recent frames: `{frames, work_ms: {p50, p95, p99, max, recent}, interval_ms: {..}}`. */
const frames = () => hall?.map.painter.times.report() ?? null;
const resetFrames = () => hall?.map.painter.times.reset();

Object.assign(window, {
  __soldonce: { seatPoint, seatSide, seatState, state, drawn, atRest, time, frames, resetFrames },
});
