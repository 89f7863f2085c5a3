#!lua
-- Takes one request from a quota that servers share, by the clock of this server: the arithmetic of
-- quota.rs. Rules: lease.md 6.2. At maxmemory it is refused, and requests go on unshared.
--
-- KEYS: the caller's key: a time in microseconds until which its requests are paid for
-- ARGV: microseconds that one request is worth, and that all are worth
-- Answers:  1, left, microseconds until all may come  |  0, 0, microseconds until the next may
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, whole = tonumber(ARGV[1]), tonumber(ARGV[2])

local paid = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
-- More than a whole quota can be owed only by a clock that was set back, or an older, larger quota.
local owed = math.min(math.max(paid - now, 0), whole) + interval
if owed > whole then
  return {0, 0, owed - whole}
end
redis.call('SET', KEYS[1], string.format('%.0f', now + owed), 'PX', math.ceil(owed / 1000))
return {1, math.floor((whole - owed) / interval), owed}
