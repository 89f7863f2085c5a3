#!lua
-- Grants all names of one item to its owner, or any one of them, or tells why not. Serves what grant.lua leaves to it.
-- Specification: lease.md 6.3, docs/decisions/0270.
--
-- KEYS: fence record, mark of fair queues, lease keys (1 to 64), then the queue of the name, if it has one
-- ARGV: how many lease keys, owner (32 hex), ttl ms, cap ms (0: none), floor (a token's number; 0: none;
--       '': no tokens), waiter ('': none), fair ('1': keep a place in the queue), meta, any ('1': one is enough)
-- Answers:
--   token                            every name is the owner's now, for the ttl or the cap
--   1, token, granted ms             every name was the owner's before, and is for so long: the ttl, or what it had
--                                    after both, the index of the name that was picked, if any was asked for
--   0, n, (index, pttl, token)* n    held by others
--   2, ep, ask                       EPOCH: install an epoch above ep, and show this ask
--   3                                the owner's cap is used up
--   4                                the queue is full
--   7, code, message                 refused before anything was written
--   8, ms                            only earlier waiters are before us; the first of them counts
--                                    as dead in so many ms, unless it asks before
-- Everything is read and checked before the first write: a script is not rolled back.
local COUNTERS, ALIVE_MS, QUEUE_MS, QUEUE_MAX = 4294967296, 3000, 60000, 128
-- A queue with a waiter that is alive keeps its mark: the waiter asks at least every second.
local MARK_MS = ALIVE_MS + 1000
local call, pcall, sub, floor_of = redis.call, redis.pcall, string.sub, math.floor
local fence, mark, final = KEYS[1], KEYS[2], tonumber(ARGV[1]) + 2
local owner, ttl, cap, floor = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local waiter, fair, meta, queue = ARGV[6], ARGV[7] == '1', ARGV[8], KEYS[final + 1]
local any, picked = ARGV[9] == '1', nil

local function digits(number)
  return string.format('%016.0f', number)
end

local function strange(what)
  return {7, 'WRONGTYPE', what .. ' holds something else'}
end

-- The clock moves inside a script, so it is read once. Key expiry does not move.
local time = call('TIME')
local now = time[1] * 1000 + floor_of(time[2] / 1000)

local ours, others, free, token, cap_at = {}, {}, nil, nil, 0
for i = 3, final do
  local held = pcall('GET', KEYS[i])
  if not held then
    free = free or i
  elseif type(held) ~= 'string' or #held < 84 then
    return strange('a lease key')
  elseif sub(held, 1, 32) == owner then
    ours[#ours + 1] = KEYS[i]
    picked = i - 3
    token, cap_at = sub(held, 34, 49), tonumber(sub(held, 51, 66))
  else
    others[#others + 1] = {i, sub(held, 34, 49)}
  end
end

-- Asked again: the same token and a fresh ttl, within the cap. What it has stays if that is longer.
if #ours == final - 2 or any and #ours == 1 then
  local granted = ttl
  if cap_at > 0 then
    granted = math.min(granted, cap_at - now)
  end
  if granted <= 0 then
    return {3}
  end
  local lives = {}
  for i = 1, #ours do
    lives[i] = call('PTTL', ours[i])
  end
  for i = 1, #ours do
    call('PEXPIRE', ours[i], granted, 'GT')
  end
  granted = math.max(granted, math.min(unpack(lives)))
  if queue and waiter ~= '' then
    pcall('HDEL', queue, waiter)
  end
  return {1, token, granted, any and picked or nil}
end

-- Of any, the first that is free will do.
local first_key = 3
if any and free then
  others, picked, first_key, final = {}, free - 3, free, free
end

-- Who waits: waiter -> ticket:beat. A waiter whose last beat is old is dead, or ahead, as after a step of the clock.
-- A waiter with a lower ticket than ours is before us; without a ticket, all are.
local places, dead, last, alive = {}, {}, 0, 0
local mine, first, dies -- our ticket, the lowest ticket of another, and when its waiter counts as dead
if queue then
  places = pcall('HGETALL', queue)
  if places.err then
    return strange('a queue')
  end
end
for i = 1, #places, 2 do
  local ticket, beat = string.match(places[i + 1], '^(%d+):(%d+)$')
  ticket, beat = tonumber(ticket), tonumber(beat)
  last = math.max(last, ticket)
  if places[i] == waiter then
    mine = ticket
  elseif math.abs(now - beat) > ALIVE_MS then
    dead[#dead + 1] = places[i]
  else
    alive = alive + 1
    if not first or ticket < first then
      first, dies = ticket, beat + ALIVE_MS + 1 - now
    end
  end
end

if #others > 0 or first and (not mine or first < mine) then
  local answer = #others == 0 and {8, dies} or {0, #others}
  for _, other in ipairs(others) do
    answer[#answer + 1] = other[1] - 3
    answer[#answer + 1] = call('PTTL', KEYS[other[1]])
    answer[#answer + 1] = other[2]
  end
  if #ours > 0 then
    call('DEL', unpack(ours))
  end
  if #dead > 0 then
    call('HDEL', queue, unpack(dead))
  end
  if fair and waiter ~= '' then
    if not mine and alive >= QUEUE_MAX then
      return {4}
    end
    call('HSET', queue, waiter, string.format('%.0f:%.0f', mine or last + 1, now))
    call('PEXPIRE', queue, QUEUE_MS)
    call('SET', mark, '1', 'PX', MARK_MS)
  end
  return answer
end

-- The next token of the fence record, above the floor. A record counts only while the server is the one that it
-- was bound to: the replication id changes at every restart and every promotion (lease.md 4.3).
token = digits(1)
if floor then
  local record = pcall('GET', fence)
  if record and (type(record) ~= 'string' or #record < 57) then
    return strange('a fence record')
  end
  local server = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
  if not server then
    return {7, 'NOREPLID', 'INFO shows no master_replid inside a script'}
  end
  record = record or digits(0) .. '|' .. string.rep('-', 40)
  local counted = tonumber(sub(record, 1, 16))
  local least = math.max(counted, floor)
  local epoch = floor_of(counted / COUNTERS)
  if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then
    -- The record is of no use. The ask ties the epoch to this moment: a flush, a restart or an install
    -- in between makes another one, so an epoch drawn before it is refused (docs/decisions/0007).
    local ask = sub(record, 59)
    if sub(ask, 1, #server) ~= server then
      ask = server .. ':' .. time[1] .. '.' .. time[2]
      call('SET', fence, sub(record, 1, 57) .. '|' .. ask)
    end
    return {2, floor_of(least / COUNTERS), ask}
  end
  token = digits(least + 1)
  -- Before the leases, so that a script that stops repeats no token.
  call('SET', fence, token .. sub(record, 17))
end

local value = table.concat({owner, token, digits(cap > 0 and now + cap or 0), digits(now), meta}, '|')
local life = cap > 0 and math.min(ttl, cap) or ttl
for i = first_key, final do
  call('SET', KEYS[i], value, 'PX', life)
end
if mine then
  dead[#dead + 1] = waiter
end
if #dead > 0 then
  call('HDEL', queue, unpack(dead))
end
return {token, any and picked or nil}
