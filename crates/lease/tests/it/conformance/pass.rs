//! Time that passes on Redis servers without waiting for it: the end of every key comes nearer, and
//! with it the moments that the values hold.

use std::time::Duration;

use soldonce_testkit::redis::Redis;

/// Moves `ARGV[1]` milliseconds of all leases and of all places in queues into the past.
const PASS: &str = "local function back(digits) local at = tonumber(digits) \
    return at > 0 and string.format('%016.0f', at - ARGV[1]) or digits end \
    for _, key in ipairs(redis.call('KEYS', 'sl:*:l:*')) do \
    local left, v = redis.call('PTTL', key) - ARGV[1], redis.call('GET', key) \
    if left <= 0 then redis.call('DEL', key) else redis.call('SET', key, \
    string.sub(v, 1, 50) .. back(string.sub(v, 51, 66)) .. '|' .. back(string.sub(v, 68, 83)) .. \
    string.sub(v, 84), 'PX', left) end end \
    for _, key in ipairs(redis.call('KEYS', 'sl:*:q:*')) do \
    local places = redis.call('HGETALL', key) \
    for i = 1, #places, 2 do local ticket, beat = string.match(places[i + 1], '^(%d+):(%d+)$') \
    redis.call('HSET', key, places[i], string.format('%s:%.0f', ticket, beat - ARGV[1])) end \
    redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[1]) end";

/// Lets `span` pass on these servers. Replicas follow.
pub(crate) fn pass_on_redis(servers: &[Redis], span: Duration) {
    let millis = span.as_millis().to_string();
    let is_replica = |server: &&Redis| server.info("role").unwrap().as_deref() == Some("slave");
    for server in servers.iter().filter(|server| !is_replica(server)) {
        server.cli(&["EVAL", PASS, "0", &millis]).unwrap();
    }
}
