// A set of units as a shopper thinks of it: named seats, and so many places of an area. A value: a
// changed basket is another one. Compares what is wanted with what is held. Pure: no server, no page.

/** @typedef {import("./wire.js").UnitRequest} UnitRequest */
/** @typedef {import("./wire.js").Hold} Hold */

export class Basket {
  /** @param {Iterable<string>} [seats] @param {Iterable<[string, number]>} [areas] */
  constructor(seats = [], areas = []) {
    /** @type {ReadonlySet<string>} */ this.seats = new Set(seats);
    /** @type {ReadonlyMap<string, number>} */ this.areas = new Map(areas);
  }

  /** @param {Hold|null} hold */
  static of(hold) {
    const units = hold?.units ?? [];
    const places = units.flatMap(({ area }) => (area ? [{ area, quantity: 1 }] : []));
    return new Basket(units.flatMap(({ seat }) => seat ?? [])).plus(places);
  }

  get size() {
    let size = this.seats.size;
    for (const quantity of this.areas.values()) size += quantity;
    return size;
  }

  /** @param {string} area */
  quantity(area) {
    return this.areas.get(area) ?? 0;
  }

  /** @param {UnitRequest[]} units */
  plus(units) {
    return this.changed(units, 1);
  }

  /** @param {UnitRequest[]} units */
  minus(units) {
    return this.changed(units, -1);
  }

  /** @param {string} area @param {number} quantity */
  withArea(area, quantity) {
    const more = quantity - this.quantity(area);
    return more === 0 ? this : this.plus([{ area, quantity: more }]);
  }

  /** @param {UnitRequest[]} units @param {1|-1} sign */
  changed(units, sign) {
    const seats = new Set(this.seats);
    const areas = new Map(this.areas);
    for (const unit of units) {
      if ("seat" in unit) {
        if (sign > 0) seats.add(unit.seat);
        else seats.delete(unit.seat);
      } else {
        const quantity = (areas.get(unit.area) ?? 0) + sign * unit.quantity;
        if (quantity > 0) areas.set(unit.area, quantity);
        else areas.delete(unit.area);
      }
    }
    return new Basket(seats, areas);
  }

  /** @returns {UnitRequest[]} */
  requests() {
    const areas = [...this.areas].map(([area, quantity]) => ({ area, quantity }));
    return [...[...this.seats].map((seat) => ({ seat })), ...areas];
  }

  /** @param {Basket} other */
  equals(other) {
    const { add, drop } = difference(this, other);
    return add.length === 0 && drop.length === 0;
  }
}

/**
 * What turns `held` into `wanted`.
 * @param {Basket} held @param {Basket} wanted
 * @returns {{add: UnitRequest[], drop: UnitRequest[]}}
 */
export function difference(held, wanted) {
  /** @type {UnitRequest[]} */ const add = [];
  /** @type {UnitRequest[]} */ const drop = [];
  for (const seat of wanted.seats) if (!held.seats.has(seat)) add.push({ seat });
  for (const seat of held.seats) if (!wanted.seats.has(seat)) drop.push({ seat });
  for (const area of new Set([...wanted.areas.keys(), ...held.areas.keys()])) {
    const more = wanted.quantity(area) - held.quantity(area);
    if (more > 0) add.push({ area, quantity: more });
    if (more < 0) drop.push({ area, quantity: -more });
  }
  return { add, drop };
}

/** What is held, as a basket. @param {{readonly hold: Hold|null}} state */
export const heldIn = ({ hold }) => Basket.of(hold);
