// The shapes of the public API, as the page reads them. Types only: nothing here runs.
// Fields marked optional may be missing; every reader must cope with that.

/**
 * @typedef {{free?: number, held?: number, sold?: number, blocked?: number}} AreaCounts
 *
 * @typedef {object} Policy
 * @property {number} [hold_ttl_ms]
 * @property {number} [hold_max_ms]
 * @property {string|null} [cancel_until]
 * @property {"keep"|"release"} [on_payment_failure]
 * @property {number} [units_per_hold_max]
 * @property {number} [units_per_holder_max]
 * @property {string|null} [sale_opens_at]
 * @property {string|null} [sale_closes_at]
 *
 * @typedef {object} SaleEvent  One performance (sale, drop, day of slots).
 * @property {string} id
 * @property {string} name
 * @property {string|null} [starts_at]
 * @property {string} currency
 * @property {Object<string, number>} prices  Category to price, in minor units.
 * @property {Policy} [policy]
 * @property {"open"|"cancelled"} [state]
 * @property {number} [total]
 * @property {number} [free]
 * @property {number} [held]
 * @property {boolean} [on_sale]
 */

/**
 * @typedef {object} ChartSeat
 * @property {string} seat
 * @property {string} [label]
 * @property {string} category
 * @property {number} [x]  Chart units: neighbouring seats are about 1 apart.
 * @property {number} [y]
 *
 * @typedef {{row: string, label?: string, seats: ChartSeat[]}} ChartRow
 * @typedef {{zone: string, name?: string, rows: ChartRow[]}} ChartZone
 *
 * @typedef {object} ChartArea
 * @property {string} area
 * @property {string} [label]
 * @property {number} capacity
 * @property {string} category
 * @property {number} [x]
 * @property {number} [y]
 * @property {number} [width]
 * @property {number} [height]
 *
 * @typedef {{name?: string, focus?: {x: number, y: number}, zones?: ChartZone[], areas?: ChartArea[]}} Chart
 */

/**
 * @typedef {"free"|"held"|"sold"|"blocked"} UnitState
 *
 * @typedef {object} SeatsSnapshot
 * @property {number} seq
 * @property {string} server_time
 * @property {number} total
 * @property {number} free
 * @property {string[]} held
 * @property {string[]} sold
 * @property {string[]} blocked
 * @property {(AreaCounts & {area: string, capacity: number})[]} [areas]
 *
 * @typedef {{seat?: string, state?: UnitState, area?: string} & AreaCounts} FeedChange
 * @typedef {{seq: number, at: string, changes: FeedChange[]}} FeedEntry
 */

/**
 * @typedef {{seat: string}|{area: string, quantity: number}} UnitRequest
 * @typedef {{seat?: string, area?: string, place?: string, price: number, state?: string}} Line
 *
 * @typedef {object} Hold
 * @property {string} id
 * @property {string} [secret]  Only in answers to POST holds.
 * @property {string} event
 * @property {"active"|"pinned"|"consumed"|"released"|"expired"|"revoked"} state
 * @property {number} [fence]
 * @property {Line[]} units
 * @property {number} total
 * @property {string} currency
 * @property {string} [created_at]
 * @property {string} expires_at
 * @property {string} max_expires_at
 * @property {string} server_time
 * @property {string|null} [booking]
 * @property {boolean} [together]
 * @property {number} [seq]
 *
 * @typedef {object} Payment  What the provider last said.
 * @property {string} state
 * @property {number} [amount]
 * @property {number} [captured]
 * @property {number} [refunded]
 * @property {number} [carried]  What of it is the credit of bookings that lines were given back for.
 * @property {string|null} [provider]
 * @property {string|null} [intent]
 * @property {string} [client_secret]  In the answer to checkout alone.
 *
 * @typedef {{card: string, name: string, about: string}} DemoCard
 * @typedef {{provider: string|null, free_sales: boolean, demo_cards: DemoCard[]}} Payments
 *
 * @typedef {object} Booking
 * @property {string} id
 * @property {string} event
 * @property {string} [hold]
 * @property {string} state
 * @property {Line[]} lines
 * @property {number} total
 * @property {string} currency
 * @property {string|null} [reference]
 * @property {{booking: string, difference: number, credit: number}} [exchange]
 * @property {Payment|null} [payment]
 * @property {string} [secret]  Opens it for anybody who has it: what its link carries.
 * @property {string} [confirmed_at]
 * @property {string} [created_at]
 * @property {number} [seq]
 */

/**
 * @typedef {object} Conflict
 * @property {string} [seat]
 * @property {string} [area]
 * @property {"held"|"sold"|"blocked"|"yours"|"full"} state
 * @property {number} [retry_after_ms]
 * @property {number} [free]
 *
 * @typedef {{units: UnitRequest[], together?: boolean}} Alternative
 *
 * @typedef {object} Problem  RFC 9457, as the server sends it.
 * @property {number} status
 * @property {string} code
 * @property {string} [title]
 * @property {string} [detail]
 * @property {Conflict[]} [conflicts]
 * @property {Alternative[]} [alternatives]
 * @property {number} [seq]
 * @property {string|null} [booking]
 * @property {string|null} [sale_opens_at]
 */

export {};
