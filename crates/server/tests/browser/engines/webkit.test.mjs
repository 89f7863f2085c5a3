// A purchase in WebKitGTK.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { Server, named } from "../server.mjs";
import { buyTwoSeats } from "./purchase.mjs";
import { WebKit } from "./webkit.mjs";

test("WebKit buys two seats", async (t) => {
  const server = await Server.start(["demo"]);
  t.after(() => server.stop());
  const webkit = await WebKit.launch(join(named("SOLDONCE_SCRATCH"), randomUUID()));
  t.after(() => webkit.close());
  await buyTwoSeats(server, webkit, false);
});
