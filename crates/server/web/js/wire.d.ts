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
export type FeedEntry = Schemas["FeedEntry"];
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
/** What describes a route, by the line that names it: "GET /v1/holds/{hold}". */
type Described = {
  [P in keyof paths as `${Uppercase<{ [V in Verb]: paths[P][V] extends object ? V : never }[Verb]>} ${P}`]: paths[P];
};
/** The desk of a demo, which the API does not describe. */
type Demo = "POST /demo/payments/{intent}" | "POST /demo/payments/{intent}/answer";
