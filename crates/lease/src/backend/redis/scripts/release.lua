#!lua flags=allow-oom
-- Frees lease keys, compared by owner and token, and gives up places in queues. Specification: lease.md 6.3,
-- docs/decisions/0270. At maxmemory it must still run, or leases could not be ended.
--
-- KEYS: lease keys, then queues. In a slot that is being moved, a script with fewer keys is refused less often.
-- ARGV: how many lease keys; for each its proof: `owner|token`, or `owner|` if the owner alone decides; for each
--       queue the waiter that leaves it; then channels, each with the topics to publish there
-- Answers, one after the other, for each lease key:
--   1 released  |  2 gone  |  3, token taken
local sub, find = string.sub, string.find
local KEYS, ARGV = KEYS, ARGV
local leases = tonumber(ARGV[1])

-- A key of another type is no lease, and MGET passes over it.
local stored = redis.call('MGET', unpack(KEYS, 1, leases))
local answers, count, freed, free, ended = {}, 0, {}, 0, {}
for i = 1, leases do
  local held, key = stored[i], KEYS[i]
  count = count + 1
  if not held or #held < 84 or ended[key] then
    answers[count] = 2
  elseif find(held, ARGV[i + 1], 1, true) == 1 then
    answers[count], free = 1, free + 1
    freed[free], ended[key] = key, true
  else
    answers[count], answers[count + 1] = 3, sub(held, 34, 49)
    count = count + 1
  end
end
local changed = free > 0
if changed then
  redis.call('DEL', unpack(freed))
end
for i = leases + 1, #KEYS do
  -- A queue of another type holds no place.
  changed = redis.pcall('HDEL', KEYS[i], ARGV[i + 1]) == 1 or changed
end
if changed then
  for i = #KEYS + 2, #ARGV, 2 do
    -- A hint. A user without the channel's permission still releases.
    redis.pcall('SPUBLISH', ARGV[i], ARGV[i + 1])
  end
end
return answers
