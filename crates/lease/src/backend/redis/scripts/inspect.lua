#!lua flags=no-writes
-- Tells who holds a name. Specification: lease.md 6.3.
--
-- KEYS: lease key
-- Answers:  value, pttl, now ms (the server's clock)  |  nothing when the name is free
local held = redis.call('GET', KEYS[1])
if not held then
  return {}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {held, redis.call('PTTL', KEYS[1]), now}
