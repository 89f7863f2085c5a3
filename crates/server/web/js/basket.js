// A set of units as a shopper thinks of it: named seats, and so many places of an area. Compares
// what is wanted with what is held. Pure: no server, no page.

/** @typedef {import("./wire.js").UnitRequest} UnitRequest */
/** @typedef {import("./wire.js").Hold} Hold */

export class Basket {
  constructor() {
    /** @type {Set<string>} */ this.seats = new Set();
    /** @type {Map<string, number>} */ this.areas = new Map();
  }

  /** @param {Hold|null} hold */
  static of(hold) {
    const basket = new Basket();
    for (const unit of hold?.units ?? []) {
      if (unit.area) basket.areas.set(unit.area, (basket.areas.get(unit.area) ?? 0) + 1);
      else if (unit.seat) basket.seats.add(unit.seat);
    }
    return basket;
  }

  copy() {
    return new Basket().add(this.requests());
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

  /** @param {string} area @param {number} quantity */
  setQuantity(area, quantity) {
    if (quantity > 0) this.areas.set(area, quantity);
    else this.areas.delete(area);
  }

  /** @param {UnitRequest[]} units */
  add(units) {
    for (const unit of units) {
      if ("seat" in unit) this.seats.add(unit.seat);
      else this.setQuantity(unit.area, this.quantity(unit.area) + unit.quantity);
    }
    return this;
  }

  /** @param {UnitRequest[]} units */
  drop(units) {
    for (const unit of units) {
      if ("seat" in unit) this.seats.delete(unit.seat);
      else this.setQuantity(unit.area, Math.max(0, this.quantity(unit.area) - unit.quantity));
    }
    return this;
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
