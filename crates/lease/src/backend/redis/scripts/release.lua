#!lua flags=allow-oom
-- Frees the names of each item of a batch, compared by owner and token, and gives up places in
-- queues. Specification: lease.md 6.3. At maxmemory it must still run, or leases could not be ended.
--
-- KEYS: lease keys of all items in order (1 to 64 each), then for each item with a waiter its queue:
--       in a slot that is being moved, a script with fewer keys is refused less often
-- ARGV: how many lease keys there are, then for each item: how many of them are its own,
--       owner, token ('': the owner alone decides), waiter ('': none), channel, names
-- Answers, for each item, for each of its lease keys:
--   1, '' released  |  2, '' gone  |  3, token taken
local FIELDS = 6
local sub = string.sub

-- A key of another type is no lease, and MGET passes over it.
local leases = tonumber(ARGV[1])
local found = redis.call('MGET', unpack(KEYS, 1, leases))

local answers, freed, ended, left, told = {}, {}, {}, {}, {}
local key, queue = 1, leases
for at = 2, #ARGV, FIELDS do
  local owner, token, waiter = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local answer, tells = {}, false
  for i = key, key + ARGV[at] - 1 do
    local held, code, by = found[i], 2, ''
    if held and #held >= 84 and not ended[KEYS[i]] then
      local stored = sub(held, 34, 49)
      if sub(held, 1, 32) == owner and (token == '' or token == stored) then
        code, tells = 1, true
        freed[#freed + 1], ended[KEYS[i]] = KEYS[i], true
      else
        code, by = 3, stored
      end
    end
    answer[#answer + 1], answer[#answer + 2] = code, by
  end
  key = key + ARGV[at]
  if waiter ~= '' then
    queue = queue + 1
    left[#left + 1] = {KEYS[queue], waiter, at}
  end
  if tells then
    told[at] = true
  end
  answers[#answers + 1] = answer
end

if #freed > 0 then
  redis.call('DEL', unpack(freed))
end
for _, place in ipairs(left) do
  -- A queue of another type holds no place.
  if redis.pcall('HDEL', place[1], place[2]) == 1 then
    told[place[3]] = true
  end
end
for at = 2, #ARGV, FIELDS do
  if told[at] then
    -- A hint. A user without the channel's permission still releases.
    redis.pcall('SPUBLISH', ARGV[at + 4], ARGV[at + 5])
  end
end
return answers
