#!lua flags=allow-oom
-- Frees the names of one grant, compared by owner and token, and gives up a place in the queue.
-- Specification: lease.md 6.3. At maxmemory it must still run, or leases could not be ended.
--
-- KEYS: lease keys (1 to 64), and after them the queue if there is a waiter: in a slot that is
--       being moved, a script with fewer keys is refused less often
-- ARGV: owner, token ('': the owner alone decides), waiter ('': none), channel, names
-- Answers, for each lease key:  1, '' released  |  2, '' gone  |  3, token taken
local owner, token, waiter = ARGV[1], ARGV[2], ARGV[3]

local leases = #KEYS
if waiter ~= '' then
  leases = leases - 1
end
local answers, freed = {}, {}
for i = 1, leases do
  local held = redis.pcall('GET', KEYS[i])
  local answer, by = 2, ''
  if type(held) == 'string' and #held >= 84 then
    local stored = string.sub(held, 34, 49)
    if string.sub(held, 1, 32) == owner and (token == '' or token == stored) then
      answer = 1
      freed[#freed + 1] = KEYS[i]
    else
      answer, by = 3, stored
    end
  end
  answers[#answers + 1], answers[#answers + 2] = answer, by
end

if #freed > 0 then
  redis.call('DEL', unpack(freed))
end
local left = 0
if waiter ~= '' then
  left = redis.call('HDEL', KEYS[#KEYS], waiter)
end
if #freed > 0 or left > 0 then
  -- A hint. A user without the channel's permission still releases.
  redis.pcall('SPUBLISH', ARGV[4], ARGV[5])
end
return answers
