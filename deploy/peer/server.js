// Starts the server, or some processes of it, and ends it at SIGTERM when all is answered.
import cluster from "node:cluster";

import { makeApp } from "./app.js";
import { makeTables, openDatabase } from "./database.js";
import { distributed } from "./flows/distributed.js";
import { pessimistic } from "./flows/pessimistic.js";
import { redisAlone } from "./flows/redis.js";
import { openRedis } from "./redis.js";
import { settings } from "./settings.js";

const FLOWS = { distributed, pessimistic, redis: redisAlone };

async function serve() {
  const pool = openDatabase(settings);
  const redis = openRedis(settings);
  const flow = FLOWS[settings.flow]({ pool, redis, settings });
  const server = makeApp({ flow, pool, settings }).listen(settings.port, "127.0.0.1", (error) => {
    if (error) throw error;
    if (!cluster.isWorker) tell(server.address().port);
  });
  process.once("SIGTERM", () => {
    server.close(async () => {
      await Promise.all([pool.end(), redis.quit()]);
      process.disconnect?.();
    });
  });
}

/// Workers share the port, whichever the system gave.
function lead() {
  const workers = Array.from({ length: settings.processes }, () => cluster.fork());
  let listening = 0;
  cluster.on("listening", (_, { port }) => {
    listening += 1;
    if (listening === workers.length) tell(port);
  });
  cluster.on("exit", (_, code) => {
    process.exitCode ||= code;
  });
  process.once("SIGTERM", () => workers.forEach((worker) => worker.process.kill("SIGTERM")));
}

function tell(port) {
  const { flow, processes, connections, lockRetries } = settings;
  const setting = `processes ${processes}, connections ${connections}, lock retries ${lockRetries}`;
  console.log(`peer ${flow} (${setting}) serves on http://127.0.0.1:${port}`);
}

if (cluster.isPrimary) {
  const pool = openDatabase(settings);
  await makeTables(pool);
  await pool.end();
}
if (cluster.isPrimary && settings.processes > 1) lead();
else await serve();
