// Positions for what a chart leaves unplaced: rows are stacked below each other, areas below the
// rows. A zone is placed either by its chart or by us, never half and half.

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {import("./wire.js").ChartZone} ChartZone */
/** @typedef {import("./wire.js").ChartArea} ChartArea */

const isNumber = (/** @type {unknown} */ value) =>
  typeof value === "number" && Number.isFinite(value);

/** @param {Plan} plan @param {ChartZone[]} zones */
export function placeZones(plan, zones) {
  let bottom = -Infinity;
  zones.forEach((zone, z) => {
    if (!isPlaced(zone)) return;
    let next = plan.rows[plan.zones[z].firstRow]?.first ?? 0;
    for (const row of zone.rows) {
      for (const seat of row.seats) {
        plan.xs[next] = Number(seat.x);
        plan.ys[next] = Number(seat.y);
        bottom = Math.max(bottom, Number(seat.y));
        next += 1;
      }
    }
  });
  let top = bottom === -Infinity ? 0 : bottom + 3;
  zones.forEach((zone, z) => {
    if (!isPlaced(zone)) top = stackZone(plan, z, top) + 3;
  });
}

/** @param {ChartZone} zone */
function isPlaced(zone) {
  return zone.rows.every((row) => row.seats.every((seat) => isNumber(seat.x) && isNumber(seat.y)));
}

/** Centred rows, one under the other; answers where the last one stands. */
function stackZone(/** @type {Plan} */ plan, /** @type {number} */ z, /** @type {number} */ top) {
  const zone = plan.zones[z];
  let y = top;
  for (let r = zone.firstRow; r < zone.endRow; r += 1) {
    const { first, end } = plan.rows[r];
    const fold = foldOf(end - first, zone.endRow - zone.firstRow);
    for (let i = first; i < end; i += 1) {
      const k = i - first;
      plan.xs[i] = (k % fold) - (fold - 1) / 2;
      plan.ys[i] = y + Math.floor(k / fold) * 1.1;
    }
    y += Math.max(1, Math.ceil((end - first) / Math.max(1, fold))) * 1.1;
  }
  return y;
}

/** A long row is folded, and a single row (a list of things) is made a block. */
function foldOf(/** @type {number} */ seats, /** @type {number} */ rows) {
  if (rows === 1 && seats > 12) return Math.ceil(Math.sqrt(seats * 2.5));
  return Math.min(seats, 60);
}

/** @param {Plan} plan @param {ChartArea[]} areas */
export function placeAreas(plan, areas) {
  const bounds = plan.seatBounds;
  const unplaced = areas.filter((area) => !hasRectangle(area));
  const across = Math.min(3, Math.max(1, unplaced.length));
  const gap = plan.pitch * 0.8;
  const span = Math.max(bounds.right - bounds.left, plan.pitch * 10) + plan.pitch * 0.8;
  const width = (span - gap * (across - 1)) / across;
  const height = plan.pitch * 4;
  const top = lowest(plan, areas) + plan.pitch * 1.6;
  return areas.map((area) => {
    const k = unplaced.indexOf(area);
    const own = {
      x: bounds.left - plan.pitch * 0.4 + (k % across) * (width + gap),
      y: top + Math.floor(k / across) * (height + gap),
      width,
      height,
    };
    const { x, y, width: w, height: h } = area;
    const rectangle =
      k >= 0 ? own : { x: Number(x), y: Number(y), width: Number(w), height: Number(h) };
    return {
      id: area.area,
      label: area.label ?? area.area,
      capacity: area.capacity,
      category: Math.max(
        0,
        plan.categories.findIndex((c) => c.name === area.category),
      ),
      ...rectangle,
    };
  });
}

/** @param {ChartArea} area */
function hasRectangle(area) {
  return [area.x, area.y, area.width, area.height].every(isNumber);
}

/** @param {Plan} plan @param {ChartArea[]} areas */
function lowest(plan, areas) {
  let bottom = plan.seatBounds.bottom;
  for (const area of areas) {
    if (hasRectangle(area)) bottom = Math.max(bottom, Number(area.y) + Number(area.height));
  }
  return bottom;
}
