// What tests know of the page beyond its elements: `window.__soldonce`. Runs in each document before the
// page; imports the page's own module, which the page has run by then, and reads the view that it shows.
"use strict";

(() => {
  /** @type {any} */ let page = {};
  /** Recent frames of one map. @type {{painter: any, work: number[], intervals: number[], lastAt: number}|null} */
  let times = null;
  const KEPT = 240;

  document.addEventListener("DOMContentLoaded", async () => {
    const script = /** @type {HTMLScriptElement|null} */ (document.querySelector('script[src$="/js/all.js"]'));
    if (script) page = await import(script.src);
  });

  /** The page of an event, or null. */
  const hall = () => {
    const view = page.shown?.();
    return view?.map ? view : null;
  };

  /**
   * Where a seat can be clicked, in client coordinates. Moves the map at once if the seat is out of
   * sight or too small to be hit; null where there is no such seat, or the map has no size yet, or
   * was given another one by its page and has not looked at it yet.
   * @param {string} id
   */
  function seatPoint(id) {
    const { plan, map } = hall() ?? {};
    const seat = plan?.indexOf.get(id);
    if (seat === undefined) return null;
    const { camera, canvas, painter } = map;
    const box = canvas.getBoundingClientRect();
    const isFit = Math.abs(box.width - camera.width) < 1 && Math.abs(box.height - camera.height) < 1;
    if (!isFit || camera.width <= 1) return null;
    const [x, y] = [plan.xs[seat], plan.ys[seat]];
    const isInside = (/** @type {number} */ left, /** @type {number} */ top) =>
      left > 8 && top > 8 && left < camera.width - 8 && top < camera.height - 8;
    // A finger takes a smaller seat only by its second touch.
    const [least, pitch] = matchMedia("(pointer: coarse)").matches ? [24, 31] : [14, 22];
    const isSmall = plan.seatSide * camera.scale < least;
    if (isSmall || camera.gliding || !isInside(camera.toScreenX(x), camera.toScreenY(y))) {
      camera.jumpTo(x, y, Math.max(camera.scale, pitch / plan.pitch));
      painter.request();
    }
    return { x: box.left + camera.toScreenX(x), y: box.top + camera.toScreenY(y) };
  }

  /** Everything a test may ask about, as plain values. */
  function state() {
    const view = hall();
    if (!view) return null;
    const { event, inventory, holding, feed, map } = view;
    const { hold, wanted, trouble, refusal, ended } = holding.state;
    return {
      event: event.id,
      seq: inventory.seq,
      connection: feed.state,
      counts: inventory.counts(),
      areas: Object.fromEntries(inventory.areas),
      hold: hold && { ...hold, secret: undefined },
      wanted: wanted.requests(),
      settled: holding.settled,
      trouble: trouble.kind,
      refusal: refusal?.problem.code ?? null,
      ended: ended?.state ?? null,
      open: map.painter.open,
      booked: [...map.booked],
      pinned: [...map.painter.rows.pinned],
      scale: map.camera.scale,
    };
  }

  /** The ledger's state of one seat as the page knows it. @param {string} id */
  function seatState(id) {
    const { plan, inventory } = hall() ?? {};
    const seat = plan?.indexOf.get(id);
    return seat === undefined ? null : ["free", "held", "sold", "blocked"][inventory.state[seat]];
  }

  /** A seat's edge in CSS pixels. */
  const seatSide = () => hall() && hall().plan.seatSide * hall().map.camera.scale;

  /** Where seats are in client coordinates as the map is, and how it names zones and areas. */
  function drawn() {
    const view = hall();
    if (!view) return null;
    const { plan, map } = view;
    const { camera, canvas } = map;
    const { left, top } = canvas.getBoundingClientRect();
    const seats = plan.ids.map((/** @type {string} */ id, /** @type {number} */ k) => ({
      id,
      x: left + camera.toScreenX(plan.xs[k]),
      y: top + camera.toScreenY(plan.ys[k]),
    }));
    return { seats, names: map.painter.backdrop.names.shown() };
  }

  /** Whether the map has nothing left to draw. */
  const atRest = () => hall()?.map.painter.scheduled === 0;

  /** The server's time as the page knows it, and how far off that may be, in milliseconds. */
  const time = () => (page.clock?.known ? { now: page.clock.now(), spread: page.clock.spread } : null);

  /** Measures the frames of the map from now on. */
  function resetFrames() {
    const { painter } = hall().map;
    const isNew = times?.painter !== painter;
    const now = (times = { painter, work: [], intervals: [], lastAt: 0 });
    if (!isNew) return;
    const frame = painter.frame;
    painter.frame = (/** @type {number} */ at) => {
      const into = times ?? now;
      const startedAt = performance.now();
      frame(at);
      into.work.push(performance.now() - startedAt);
      if (into.lastAt > 0) into.intervals.push(startedAt - into.lastAt);
      // When the map rests, the gap to the next frame says nothing about smoothness.
      into.lastAt = painter.scheduled === 0 ? 0 : startedAt;
    };
  }

  /** `{frames, work_ms: {p50, p95, p99, max, recent}, interval_ms: {..}}` */
  function frames() {
    if (!times) return null;
    return { frames: times.work.length, work_ms: summary(times.work), interval_ms: summary(times.intervals) };
  }

  /** @param {number[]} values */
  function summary(values) {
    const recent = values.slice(-KEPT);
    const sorted = [...recent].sort((a, b) => a - b);
    const at = (/** @type {number} */ share) =>
      Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 100) / 100;
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1), recent };
  }

  Object.assign(window, {
    __soldonce: { seatPoint, seatSide, seatState, state, drawn, atRest, time, frames, resetFrames },
  });
})();
