// Turns a chart into flat arrays that can be drawn and searched quickly. A seat is an index from
// here on; its id, position, row and category are looked up by it. Knows nothing of availability.

import { SeatBuckets } from "./buckets.js";
import { extent, nameZones, rowLabelsOf } from "./labels.js";
import { placeAreas, placeZones } from "./placing.js";

/** @typedef {import("./wire.js").Chart} Chart */
/** @typedef {{label: string, zone: number, first: number, end: number}} PlanRow */
/** @typedef {{name: string, x: number, y: number, middle: number, width: number, clear: boolean, firstRow: number, endRow: number}} PlanZone */
/** @typedef {{id: string, label: string, capacity: number, category: number, x: number, y: number, width: number, height: number}} PlanArea */
/** @typedef {{name: string, price: number, tint: number}} PlanCategory */
/** @typedef {"left"|"right"|"up"|"down"} Direction */

const TINTS = 8;
/** @type {Record<Direction, [number, number]>} */
const STEP = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };

export class Plan {
  /** @param {Chart} chart @param {Object<string, number>} prices */
  constructor(chart, prices) {
    const { zones, areas } = chart;
    this.categories = categoriesOf(zones, areas, prices);
    const total = zones.reduce(
      (n, zone) => n + zone.rows.reduce((m, r) => m + r.seats.length, 0),
      0,
    );
    this.size = total;
    /** @type {string[]} */ this.ids = new Array(total);
    /** @type {string[]} */ this.labels = new Array(total);
    this.xs = new Float32Array(total);
    this.ys = new Float32Array(total);
    this.category = new Uint16Array(total);
    this.rowOf = new Uint32Array(total);
    /** @type {PlanRow[]} */ this.rows = [];
    /** @type {PlanZone[]} */ this.zones = [];
    /** @type {Map<string, number>} */ this.indexOf = new Map();
    this.addZones(zones);
    placeZones(this, zones);
    this.pitch = pitchOf(this);
    this.seatSide = this.pitch * 0.8;
    this.seatBounds = extent(this, 0, total);
    /** @type {PlanArea[]} */ this.areas = placeAreas(this, areas);
    this.stage = stageOf(this);
    this.bounds = wholeOf(this);
    this.buckets = new SeatBuckets(this.xs, this.ys, this.pitch * 8);
    nameZones(this);
    /** @type {import("./labels.js").RowLabel[]} */ this.rowLabels = rowLabelsOf(this);
  }

  /** @param {import("./wire.js").ChartZone[]} zones */
  addZones(zones) {
    const tintOf = new Map(this.categories.map((category, c) => [category.name, c]));
    // A single row is no row to a reader, but a list of things.
    const list = zones.length === 1 && zones[0].rows.length === 1;
    let next = 0;
    zones.forEach((zone, z) => {
      const firstRow = this.rows.length;
      for (const row of zone.rows) {
        const label = list ? "" : row.row;
        const first = next;
        for (const seat of row.seats) {
          this.ids[next] = seat.seat;
          this.labels[next] = shortLabel(seat, label);
          this.category[next] = tintOf.get(seat.category) ?? 0;
          this.rowOf[next] = this.rows.length;
          this.indexOf.set(seat.seat, next);
          next += 1;
        }
        this.rows.push({ label, zone: z, first, end: next });
      }
      const name = zone.name ?? zone.zone;
      const endRow = this.rows.length;
      this.zones.push({ name, x: 0, y: 0, middle: 0, width: 0, clear: true, firstRow, endRow });
    });
  }

  /** What one of these is called where no better name is at hand. */
  get unitWord() {
    return this.areas.length > 0 ? "place" : "seat";
  }

  /** "Row A seat 12"; the zone is added where there are several. @param {number} seat */
  nameOf(seat) {
    const row = this.rows[this.rowOf[seat]];
    return row.label ? `Row ${row.label} seat ${this.labels[seat]}` : `Seat ${this.labels[seat]}`;
  }

  /** @param {number} seat */
  zoneNameOf(seat) {
    return this.zones.length > 1 ? this.zones[this.rows[this.rowOf[seat]].zone].name : "";
  }

  /** Its zone and its category, each name once. @param {number} seat */
  kindOf(seat) {
    const names = [this.zoneNameOf(seat), this.categories[this.category[seat]].name];
    return [...new Set(names.filter(Boolean))];
  }

  /** @param {string} seat  Its id. */
  categoryOf(seat) {
    return this.categories[this.category[this.indexOf.get(seat) ?? 0]];
  }

  /** @param {string} id */
  areaOf(id) {
    return this.areas.find((area) => area.id === id);
  }

  /** Names a unit of a hold, a conflict or a request. @param {{seat?: string, area?: string}} unit */
  unitName(unit) {
    if (unit.area) return this.areaOf(unit.area)?.label ?? unit.area;
    const seat = this.indexOf.get(unit.seat ?? "");
    return seat === undefined ? `Seat ${unit.seat}` : this.nameOf(seat);
  }

  /**
   * The seat an arrow key leads to: the closest one roughly in that direction, those of the same
   * row first. Scans all seats; a key press can afford that, and an index would be one more thing.
   * @param {number} from @param {Direction} direction
   */
  neighbour(from, direction) {
    const [dx, dy] = STEP[direction];
    let best = -1;
    let bestCost = Infinity;
    for (let i = 0; i < this.size; i += 1) {
      const x = this.xs[i] - this.xs[from];
      const y = this.ys[i] - this.ys[from];
      const along = x * dx + y * dy;
      const across = Math.abs(x * dy) + Math.abs(y * dx);
      if (along < this.pitch * 0.3 || across > along * 1.2) continue;
      const sameRow = this.rowOf[i] === this.rowOf[from] ? 0.6 : 1;
      const cost = (along + across * 2.2) * sameRow;
      if (cost < bestCost) [best, bestCost] = [i, cost];
    }
    return best;
  }
}

/** The label within its row: "A-12" in row "A" is seat 12. */
function shortLabel(/** @type {import("./wire.js").ChartSeat} */ { label }, /** @type {string} */ row) {
  return row && label.startsWith(`${row}-`) ? label.slice(row.length + 1) : label;
}

/** Dearest first, which is also the order of the legend and of the tints.
 *  @param {import("./wire.js").ChartZone[]} zones @param {import("./wire.js").ChartArea[]} areas
 *  @param {Object<string, number>} prices */
function categoriesOf(zones, areas, prices) {
  const names = new Set(areas.map((area) => area.category));
  for (const zone of zones) {
    for (const row of zone.rows) for (const seat of row.seats) names.add(seat.category);
  }
  return [...names]
    .map((name) => ({ name, price: prices[name] ?? 0, tint: 0 }))
    .sort((a, b) => b.price - a.price || a.name.localeCompare(b.name))
    .map((category, c) => ({ ...category, tint: c % TINTS }));
}

/** The usual distance of neighbours in a row: a low percentile, so that aisles do not count. */
function pitchOf(/** @type {Plan} */ plan) {
  /** @type {number[]} */
  const gaps = [];
  for (const row of plan.rows) {
    for (let i = row.first + 1; i < row.end && gaps.length < 4000; i += 1) {
      gaps.push(Math.hypot(plan.xs[i] - plan.xs[i - 1], plan.ys[i] - plan.ys[i - 1]));
    }
  }
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length * 0.1)] || 1;
}

/** @param {Plan} plan */
function wholeOf(plan) {
  const { left, top, right, bottom } = plan.seatBounds;
  const whole = { left, top, right, bottom };
  for (const area of plan.areas) {
    whole.left = Math.min(whole.left, area.x);
    whole.top = Math.min(whole.top, area.y);
    whole.right = Math.max(whole.right, area.x + area.width);
    whole.bottom = Math.max(whole.bottom, area.y + area.height);
  }
  const margin = plan.pitch * 1.6;
  return {
    left: Math.min(whole.left, plan.stage.x) - margin,
    right: Math.max(whole.right, plan.stage.x + plan.stage.width) + margin,
    top: plan.stage.y - plan.pitch * 0.8,
    bottom: whole.bottom + margin,
  };
}

/** The stage stands above everything, half as wide as the hall. A list of things has none. */
function stageOf(/** @type {Plan} */ plan) {
  let { left, top, right } = plan.seatBounds;
  for (const area of plan.areas) {
    left = Math.min(left, area.x);
    right = Math.max(right, area.x + area.width);
    top = Math.min(top, area.y);
  }
  const shown = plan.rows.length !== 1;
  const width = Math.max((right - left) * 0.5, plan.pitch * 6);
  const height = shown ? Math.max(plan.pitch * 1.5, width * 0.09) : 0;
  const gap = plan.pitch * (plan.zones.length > 1 ? 2 : 1.3);
  return { x: (left + right - width) / 2, y: top - height - gap, width, height };
}
