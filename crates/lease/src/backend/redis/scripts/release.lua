#!lua flags=allow-oom
-- Frees the names of each item of a batch, compared by owner and token, and gives up places in
-- queues. Specification: lease.md 6.3, docs/decisions/0019. At maxmemory it must still run, or
-- leases could not be ended.
--
-- KEYS: lease keys of all items in order (1 to 64 each), then for each item with a waiter its queue:
--       in a slot that is being moved, a script with fewer keys is refused less often
-- ARGV: how many lease keys there are, then for each item
--         proof: `owner|token`, or `owner|` if the owner alone decides; channel, names;
--         before it, if it has several lease keys or a waiter: '+', how many keys, waiter ('': none)
-- Answers, one after the other, for each lease key:
--   1 released  |  2 gone  |  3, token taken
local sub, find = string.sub, string.find
local KEYS, ARGV = KEYS, ARGV

-- A key of another type is no lease, and MGET passes over it.
local leases = tonumber(ARGV[1])
local found = redis.call('MGET', unpack(KEYS, 1, leases))

-- What most calls are: one name.
if leases == 1 and ARGV[2] ~= '+' then
  local held, proof = found[1], ARGV[2]
  if not held or #held < 84 then
    return {2}
  elseif find(held, proof, 1, true) ~= 1 then
    return {3, sub(held, 34, 49)}
  end
  redis.call('DEL', KEYS[1])
  redis.pcall('SPUBLISH', ARGV[3], ARGV[4])
  return {1}
end

local answers, freed, ended, left, told = {}, {}, {}, {}, {}
-- A number that is kept: the length of a table is looked for anew each time.
local key, queue, arg, count = 1, leases, 2, 0
while arg < #ARGV do
  local final, waiter = key, ''
  if ARGV[arg] == '+' then
    final, waiter, arg = key + ARGV[arg + 1] - 1, ARGV[arg + 2], arg + 3
  end
  local proof, tells = ARGV[arg], false
  for i = key, final do
    local held, lease = found[i], KEYS[i]
    count = count + 1
    if not held or #held < 84 or ended[lease] then
      answers[count] = 2
    elseif find(held, proof, 1, true) == 1 then
      answers[count] = 1
      freed[#freed + 1], ended[lease], tells = lease, true, true
    else
      answers[count], answers[count + 1] = 3, sub(held, 34, 49)
      count = count + 1
    end
  end
  if waiter ~= '' then
    queue = queue + 1
    left[#left + 1] = {KEYS[queue], waiter, not tells and arg}
  end
  if tells then
    told[#told + 1] = arg
  end
  key, arg = final + 1, arg + 3
end

if #freed > 0 then
  redis.call('DEL', unpack(freed))
end
for _, place in ipairs(left) do
  -- A queue of another type holds no place.
  if redis.pcall('HDEL', place[1], place[2]) == 1 and place[3] then
    told[#told + 1] = place[3]
  end
end
for i = 1, #told do
  local item = told[i]
  -- A hint. A user without the channel's permission still releases.
  redis.pcall('SPUBLISH', ARGV[item + 1], ARGV[item + 2])
end
return answers
