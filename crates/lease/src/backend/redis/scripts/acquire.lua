#!lua
-- Grants to each item of a batch all its names, or tells why not. Items are served in their order,
-- as if each were a script of its own. Specification: lease.md 6.3, docs/decisions/0014.
--
-- KEYS: lease keys of all items in order (1 to 64 each), then for each item its fence record, then
--       for each item that has one its queue
-- ARGV: how many lease keys there are, then for each item: how many of them are its own,
--       owner (32 hex), ttl ms, cap ms (0: none), floor (a token's number; 0: none),
--       waiter ('' : none), fair ('1' | '0' | '': it has no queue), meta
-- Answers, for each item:
--   1, token, granted ms, again      every name is the owner's; again = 1: it was before
--   0, (index, pttl, token)*         held by others, or only earlier waiters stand before us
--   2, ep, ask                       EPOCH: install an epoch above ep, and show this ask
--   3                                the owner's cap is used up
--   4                                the queue is full
--   7, code, message                 refused before anything was written
-- Everything of an item is read and checked before its first write: a script is not rolled back.
local COUNTERS, ALIVE_MS, QUEUE_MS, QUEUE_MAX, FIELDS = 4294967296, 3000, 60000, 128, 8
local call, sub, format = redis.call, string.sub, string.format

local function digits(number)
  return format('%016.0f', number)
end

local function strange(what)
  return {7, 'WRONGTYPE', what .. ' holds something else'}
end

-- The clock moves inside a script, so it is read once. Key expiry stands still.
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local born = digits(now)

-- What is stored, read at once and kept true below. MGET passes over other types, EXISTS does not.
local leases, items = tonumber(ARGV[1]), (#ARGV - 1) / FIELDS
local found, held, known = call('MGET', unpack(KEYS, 1, leases)), {}, 0
for i = 1, leases do
  held[KEYS[i]] = found[i]
  if found[i] then
    known = known + 1
  end
end
local has_others = call('EXISTS', unpack(KEYS, 1, leases)) ~= known
local has_queues = #KEYS > leases + items and call('EXISTS', unpack(KEYS, leases + items + 1)) > 0

-- The fence record counts only while the server is the one that it was bound to: the replication
-- id changes at every restart and every promotion (lease.md 4.3). So it is read in each call.
local server
local function replid()
  if not server then
    local info = call('INFO', 'replication')
    local _, at = string.find(info, 'master_replid:', 1, true)
    server = at and string.match(sub(info, at + 1, at + 40), '^%x+')
  end
  return server
end

local fences = {}
local function fence_record(fence)
  local record = fences[fence]
  if not record then
    local stored = redis.pcall('HMGET', fence, 'ep', 'n', 'rid')
    if stored.err then
      return nil
    end
    record = {
      ep = tonumber(stored[1] or '0'),
      n = tonumber(stored[2] or '0'),
      rid = stored[1] and stored[3],
    }
    fences[fence] = record
  end
  return record
end

-- Who waits: waiter -> ticket:beat. A waiter whose last beat is old is dead. Whoever has a lower
-- ticket than ours stands before us; without a ticket, everyone does.
local function line(queue, waiter)
  local places = redis.pcall('HGETALL', queue)
  if places.err then
    return nil
  end
  local line, first = {dead = {}, last = 0, alive = 0}, nil
  for i = 1, #places, 2 do
    local ticket, beat = string.match(places[i + 1], '^(%d+):(%d+)$')
    ticket, beat = tonumber(ticket), tonumber(beat)
    line.last = math.max(line.last, ticket)
    if places[i] == waiter then
      line.mine = ticket
    elseif now - beat > ALIVE_MS then
      line.dead[#line.dead + 1] = places[i]
    else
      line.alive = line.alive + 1
      first = math.min(first or ticket, ticket)
    end
  end
  line.blocked = first and (not line.mine or first < line.mine)
  return line
end

-- Asked again: the same token and a fresh ttl, within the cap.
local function again(ask, token, cap_at)
  local granted = ask.ttl
  if cap_at > 0 then
    granted = math.min(granted, cap_at - now)
  end
  if granted <= 0 then
    return {3}
  end
  for i = ask.first, ask.last do
    call('PEXPIRE', KEYS[i], granted)
  end
  if ask.waiter ~= '' and ask.queue then
    redis.pcall('HDEL', ask.queue, ask.waiter)
  end
  return {1, token, granted, 1}
end

local function refuse(ask, ours, conflicts, line)
  if #ours > 0 then
    call('DEL', unpack(ours))
    for _, key in ipairs(ours) do
      held[key] = false
    end
  end
  if line and #line.dead > 0 then
    call('HDEL', ask.queue, unpack(line.dead))
  end
  if ask.fair == '1' and ask.waiter ~= '' then
    local mine, last = line and line.mine, line and line.last or 0
    if not mine and line and line.alive >= QUEUE_MAX then
      return {4}
    end
    call('HSET', ask.queue, ask.waiter, format('%.0f:%.0f', mine or last + 1, now))
    call('PEXPIRE', ask.queue, QUEUE_MS)
    has_queues = true
  end
  return {0, unpack(conflicts)}
end

-- The ask ties the epoch to this moment. A flush, a restart or an install in between makes another
-- one, so an epoch drawn before it is refused (docs/decisions/0007).
local function epoch(fence, above)
  local shown = call('HGET', fence, 'ask')
  if not shown or sub(shown, 1, #server) ~= server then
    shown = server .. ':' .. time[1] .. '.' .. time[2]
    call('HSET', fence, 'ask', shown)
  end
  return {2, above, shown}
end

local function grant(ask, record, line)
  local floor_ep, n = math.floor(ask.floor / COUNTERS), record.n
  if floor_ep == record.ep then
    n = math.max(n, ask.floor % COUNTERS)
  end
  if record.rid ~= server or floor_ep > record.ep or n >= COUNTERS - 1 then
    return epoch(ask.fence, math.max(record.ep, floor_ep))
  end
  n = n + 1
  local token, granted, cap_at = digits(record.ep * COUNTERS + n), ask.ttl, 0
  if ask.cap > 0 then
    granted, cap_at = math.min(granted, ask.cap), now + ask.cap
  end
  local value = ask.owner .. '|' .. token .. '|' .. digits(cap_at) .. '|' .. born .. '|' .. ask.meta
  record.n = n
  call('HSET', ask.fence, 'n', format('%.0f', n))
  for i = ask.first, ask.last do
    call('SET', KEYS[i], value, 'PX', granted)
    held[KEYS[i]] = value
  end
  if line then
    if line.mine then
      line.dead[#line.dead + 1] = ask.waiter
    end
    if #line.dead > 0 then
      call('HDEL', ask.queue, unpack(line.dead))
    end
  end
  return {1, token, granted, 0}
end

local function serve(ask)
  local ours, conflicts, token, cap_at = {}, {}, nil, 0
  for i = ask.first, ask.last do
    local key = KEYS[i]
    local value = held[key]
    if value then
      if #value < 84 then
        return strange('a lease key')
      end
      if sub(value, 1, 32) == ask.owner then
        ours[#ours + 1] = key
        token, cap_at = sub(value, 34, 49), tonumber(sub(value, 51, 66))
      else
        conflicts[#conflicts + 1] = i - ask.first
        conflicts[#conflicts + 1] = call('PTTL', key)
        conflicts[#conflicts + 1] = sub(value, 34, 49)
      end
    elseif has_others and call('EXISTS', key) == 1 then
      return strange('a lease key')
    end
  end
  if #ours > ask.last - ask.first then
    return again(ask, token, cap_at)
  end
  local waiting
  if has_queues and ask.queue then
    waiting = line(ask.queue, ask.waiter)
    if not waiting then
      return strange('a queue')
    end
  end
  if #conflicts > 0 or waiting and waiting.blocked then
    return refuse(ask, ours, conflicts, waiting)
  end
  local record = fence_record(ask.fence)
  if not record then
    return strange('a fence record')
  end
  if not replid() then
    return {7, 'NOREPLID', 'INFO shows no master_replid inside a script'}
  end
  return grant(ask, record, waiting)
end

local answers, first, queue = {}, 1, leases + items
for item = 1, items do
  local at = 2 + (item - 1) * FIELDS
  local ask = {
    first = first,
    last = first + ARGV[at] - 1,
    fence = KEYS[leases + item],
    owner = ARGV[at + 1],
    ttl = tonumber(ARGV[at + 2]),
    cap = tonumber(ARGV[at + 3]),
    floor = tonumber(ARGV[at + 4]),
    waiter = ARGV[at + 5],
    fair = ARGV[at + 6],
    meta = ARGV[at + 7],
  }
  if ask.fair ~= '' then
    queue = queue + 1
    ask.queue = KEYS[queue]
  end
  answers[item] = serve(ask)
  first = ask.last + 1
end
return answers
