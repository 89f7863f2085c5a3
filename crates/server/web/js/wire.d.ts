// Names for the shapes of the public API. Types only: `./test` generates them from openapi.json.

import type { components, paths } from "soldonce-api";

type Schemas = components["schemas"];

export type SaleEvent = Schemas["Event"];
export type Chart = Schemas["Chart"];
export type ChartSeat = Schemas["Seat"];
export type ChartZone = Schemas["Zone"];
export type ChartArea = Schemas["Area"];
export type SeatsSnapshot = Schemas["Seats"];
export type UnitState = Schemas["UnitState"];
export type FeedFrame = Schemas["FeedFrame"];
export type AreaCounts = Partial<Schemas["AreaCounts"]>;
export type Unit = Schemas["Unit"];
/** One of the two forms of the API's `UnitRequest`, without the fields that the form leaves out. */
export type UnitRequest = { seat: string } | { area: string; quantity: number };
export type Line = Schemas["Line"];
export type BestRequest = Schemas["BestRequest"];
export type Hold = Schemas["Hold"];
export type Booking = Schemas["Booking"];
export type Payments = Schemas["Payments"];
export type DemoCard = Schemas["DemoCard"];
export type Conflict = Schemas["Conflict"];
export type Alternative = Schemas["Alternative"];
/** A problem document; the page states some problems itself, and these have fewer fields. */
export type Problem = Partial<Schemas["Problem"]> & Pick<Schemas["Problem"], "status" | "code">;

type Verb = "get" | "post" | "patch" | "delete";
type Operations = {
  [P in keyof paths & string]: {
    [V in Verb]: paths[P][V] extends object ? { route: `${Uppercase<V>} ${P}`; operation: paths[P][V] } : never;
  }[Verb];
}[keyof paths & string];
type Operation<R> = Extract<Operations, { route: R }>["operation"];

/** An operation of the API by the line that names it: "GET /v1/holds/{hold}". Those of a demo's payments
 *  are not part of the API. */
export type Route =
  | Operations["route"]
  | "POST /demo/payments/{intent}"
  | "POST /demo/payments/{intent}/answer";

export type Body<R> =
  Operation<R> extends { requestBody?: { content: { "application/json": infer B } } } ? B : unknown;

/** What the server answers, if it does not refuse. */
export type Answer<R> =
  Operation<R> extends { responses: infer S }
    ? S[keyof S & (200 | 201)] extends { content: { "application/json": infer A } }
      ? A
      : never
    : never;

/** The rows of a list, which its answer has under the last name of its path. */
export type Rows<R> = R extends `GET /v1/${infer F}`
  ? Answer<R>[F & keyof Answer<R>] extends (infer T)[]
    ? T
    : never
  : never;

export interface Call<R extends Route = Route> {
  route: R;
  /** What stands in the braces of the route. */
  id?: string;
  body?: Body<R>;
  /** Proves ownership of a hold or a booking. */
  secret?: string | undefined;
  /** The hold's fence that the caller knows, for a route without a body: another one is refused. */
  fence?: number;
  /** Idempotency-Key. */
  key?: string;
  /** What the caller has; takes the newer one. An answer that has not changed is `null`. */
  version?: { etag: string };
  /** The answer never changes, so the browser may keep it. */
  isLasting?: boolean;
  /** Must not be repeated when its outcome is unknown. */
  isOnce?: boolean;
  /** An earlier sending by the same key may have been carried out. */
  isAgain?: boolean;
  /** Must get through: repeated as long as the server asks for short pauses, within reason. */
  isPatient?: boolean;
  /** The `next` of the page before, or the commit that is known. */
  after?: string;
  /** What came with that commit. */
  digest?: string;
}
export type CallOf<R extends Route> = Omit<Call<R>, "route">;
