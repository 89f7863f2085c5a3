#!lua
-- Grants every name to one owner, or tells why not. Specification: lease.md 6.3.
--
-- KEYS: fence record, queue, lease keys (1 to 64)
-- ARGV: owner (32 hex), ttl ms, cap ms (0: none), floor (a token's number; 0: none),
--       waiter ('' : none), fair ('1' | '0'), meta
-- Answers:
--   1, token, granted ms, again      every name is the owner's; again = 1: it was before
--   0, (index, pttl, token)*         held by others, or only earlier waiters stand before us
--   2, ep, ask                       EPOCH: install an epoch above ep, and show this ask
--   3                                the owner's cap is used up
--   4                                the queue is full
-- Everything is read and checked before the first write: a script is not rolled back.
local owner, ttl, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local floor, waiter, fair, meta = tonumber(ARGV[4]), ARGV[5], ARGV[6] == '1', ARGV[7]
local fence, queue = KEYS[1], KEYS[2]
local COUNTERS, ALIVE_MS, QUEUE_MS, QUEUE_MAX = 4294967296, 3000, 60000, 128

local function digits(number)
  return string.format('%016.0f', number)
end

-- The clock moves inside a script, so it is read once. Key expiry stands still.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local ours, conflicts, token, cap_at = {}, {}, nil, 0
for i = 3, #KEYS do
  local held = redis.call('GET', KEYS[i])
  if held then
    if #held < 84 then
      return redis.error_reply('WRONGTYPE a lease key holds something else')
    end
    if string.sub(held, 1, 32) == owner then
      ours[#ours + 1] = KEYS[i]
      token, cap_at = string.sub(held, 34, 49), tonumber(string.sub(held, 51, 66))
    else
      conflicts[#conflicts + 1] = i - 3
      conflicts[#conflicts + 1] = redis.call('PTTL', KEYS[i])
      conflicts[#conflicts + 1] = string.sub(held, 34, 49)
    end
  end
end

-- Asked again: the same token and a fresh ttl, within the cap.
if #ours == #KEYS - 2 then
  local granted = ttl
  if cap_at > 0 then
    granted = math.min(ttl, cap_at - now)
  end
  if granted <= 0 then
    return {3}
  end
  for i = 3, #KEYS do
    redis.call('PEXPIRE', KEYS[i], granted)
  end
  if waiter ~= '' then
    redis.call('HDEL', queue, waiter)
  end
  return {1, token, granted, 1}
end

-- Who waits: waiter -> ticket:beat. A waiter whose last beat is old is dead. Whoever has a lower
-- ticket than ours stands before us; without a ticket, everyone does.
local places, dead, mine, last, alive, first = redis.call('HGETALL', queue), {}, nil, 0, 0, nil
for i = 1, #places, 2 do
  local ticket, beat = string.match(places[i + 1], '^(%d+):(%d+)$')
  ticket, beat = tonumber(ticket), tonumber(beat)
  last = math.max(last, ticket)
  if places[i] == waiter then
    mine = ticket
  elseif now - beat > ALIVE_MS then
    dead[#dead + 1] = places[i]
  else
    alive = alive + 1
    first = math.min(first or ticket, ticket)
  end
end
local blocked = first and (not mine or first < mine)

if #conflicts > 0 or blocked then
  if #ours > 0 then
    redis.call('DEL', unpack(ours))
  end
  if #dead > 0 then
    redis.call('HDEL', queue, unpack(dead))
  end
  if fair and waiter ~= '' then
    if not mine and alive >= QUEUE_MAX then
      return {4}
    end
    local place = string.format('%.0f:%.0f', mine or last + 1, now)
    redis.call('HSET', queue, waiter, place)
    redis.call('PEXPIRE', queue, QUEUE_MS)
  end
  return {0, unpack(conflicts)}
end

-- The fence record counts only while the server is the one that it was bound to: the replication
-- id changes at every restart and every promotion (lease.md 4.3).
local record = redis.call('HMGET', fence, 'ep', 'n', 'rid', 'ask')
local ep, n = tonumber(record[1] or '0'), tonumber(record[2] or '0')
local rid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if not rid then
  return redis.error_reply('NOREPLID INFO shows no master_replid inside a script')
end
local floor_ep = math.floor(floor / COUNTERS)
if floor_ep == ep then
  n = math.max(n, floor % COUNTERS)
end
if not record[1] or record[3] ~= rid or floor_ep > ep or n >= COUNTERS - 1 then
  -- The ask ties the epoch to this moment. A flush, a restart or an install in between makes
  -- another one, so an epoch drawn before it is refused (docs/decisions/0007).
  local ask = record[4]
  if not ask or string.sub(ask, 1, #rid) ~= rid then
    ask = rid .. ':' .. time[1] .. '.' .. time[2]
    redis.call('HSET', fence, 'ask', ask)
  end
  return {2, math.max(ep, floor_ep), ask}
end

n = n + 1
token = digits(ep * COUNTERS + n)
local granted = ttl
if cap > 0 then
  granted, cap_at = math.min(ttl, cap), now + cap
else
  cap_at = 0
end
local value = table.concat({owner, token, digits(cap_at), digits(now), meta}, '|')
redis.call('HSET', fence, 'n', string.format('%.0f', n))
for i = 3, #KEYS do
  redis.call('SET', KEYS[i], value, 'PX', granted)
end
if mine then
  dead[#dead + 1] = waiter
end
if #dead > 0 then
  redis.call('HDEL', queue, unpack(dead))
end
return {1, token, granted, 0}
