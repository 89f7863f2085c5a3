// A purchase in Firefox.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { Server, named } from "../server.mjs";
import { Firefox } from "./marionette.mjs";
import { buyTwoSeats } from "./purchase.mjs";

const BROWSERS = {
  "as it comes": {},
  "without cookies and storage": { "network.cookie.cookieBehavior": 2 },
};

for (const [how, preferences] of Object.entries(BROWSERS)) {
  test(`Firefox, ${how}, buys two seats`, async (t) => {
    const server = await Server.start(["demo"]);
    t.after(() => server.stop());
    const firefox = await Firefox.launch(join(named("SOLDONCE_SCRATCH"), randomUUID()), preferences);
    t.after(() => firefox.close());
    await buyTwoSeats(server, firefox, "network.cookie.cookieBehavior" in preferences);
  });
}
