// Redis or a Redis Cluster. Commands of one turn of the event loop share a round trip.
import { Cluster, Redis } from "ioredis";

// Only the owner of a lock deletes it: its time may be over and the lock another's.
const RELEASE = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`;

export function openRedis({ redis: nodes }) {
  const options = { enableAutoPipelining: true };
  const redis = nodes.length > 1 ? new Cluster(nodes, options) : new Redis({ ...nodes[0], ...options });
  redis.on("error", (error) => console.error(error.message));
  redis.defineCommand("releaseLock", { numberOfKeys: 1, lua: RELEASE });
  return redis;
}
