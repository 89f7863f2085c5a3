// Where the names of zones and rows stand, so that they are read once and cover no seat.

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {{text: string, x: number, y: number}} RowLabel */

// Blocks of one row this close to each other (in seats) share the labels at the outer ends.
const AISLE = 3.2;

/** The rectangle of the seats `first..end`. @param {Plan} plan @param {number} first @param {number} end */
export function extent(plan, first, end) {
  if (first === end) return { left: 0, top: 0, right: 12, bottom: 0 };
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let i = first; i < end; i += 1) {
    bounds.left = Math.min(bounds.left, plan.xs[i]);
    bounds.right = Math.max(bounds.right, plan.xs[i]);
    bounds.top = Math.min(bounds.top, plan.ys[i]);
    bounds.bottom = Math.max(bounds.bottom, plan.ys[i]);
  }
  return bounds;
}

/** A zone's name stands above the middle of its first row, which may be bent. @param {Plan} plan */
export function nameZones(plan) {
  for (const zone of plan.zones) {
    if (zone.firstRow === zone.endRow) continue;
    const first = plan.rows[zone.firstRow].first;
    const end = plan.rows[zone.endRow - 1].end;
    const { left, right, top, bottom } = extent(plan, first, end);
    zone.x = (left + right) / 2;
    zone.middle = (top + bottom) / 2;
    zone.width = right - left;
    zone.y = bottom;
    for (let i = first; i < end; i += 1) {
      const central = Math.abs(plan.xs[i] - zone.x) <= zone.width * 0.15 + plan.pitch;
      if (central) zone.y = Math.min(zone.y, plan.ys[i]);
    }
    zone.y -= plan.pitch * 1.2;
    // In a bent hall that may be among the seats of others; then the name shows from afar only.
    for (let step = -2; step <= 2; step += 1) {
      const x = zone.x + step * plan.pitch;
      if (plan.buckets.nearest(x, zone.y, plan.pitch * 0.8) >= 0) zone.clear = false;
    }
  }
}

/** A label one place beyond each end of a row. @param {Plan} plan @returns {RowLabel[]} */
export function rowLabelsOf(plan) {
  /** @type {RowLabel[]} */
  const labels = [];
  for (const row of plan.rows) {
    if (!row.label || row.end - row.first < 2) continue;
    for (const [last, before] of [
      [row.first, row.first + 1],
      [row.end - 1, row.end - 2],
    ]) {
      const label = endLabel(plan, row.label, last, before);
      if (label) labels.push(label);
    }
  }
  return labels;
}

/** @param {Plan} plan @param {string} text @param {number} last @param {number} before */
function endLabel(plan, text, last, before) {
  const dx = plan.xs[last] - plan.xs[before];
  const dy = plan.ys[last] - plan.ys[before];
  const step = plan.pitch / (Math.hypot(dx, dy) || 1);
  const beyond = (/** @type {number} */ places) => ({
    x: plan.xs[last] + dx * step * places,
    y: plan.ys[last] + dy * step * places,
  });
  for (let places = 1; places <= AISLE; places += 0.5) {
    const { x, y } = beyond(places);
    const seat = plan.buckets.nearest(x, y, plan.pitch * 0.6);
    if (seat < 0 || seat === last) continue;
    // The row goes on across the aisle, or the label would stand upon a seat.
    if (places < 1.6 || plan.rows[plan.rowOf[seat]].label === text) return null;
  }
  return { text, ...beyond(1) };
}
