#!lua
-- Grants to each item of a batch all its names, or tells why not. Items are served in their order,
-- as if each were a script of its own. Specification: lease.md 6.3, docs/decisions/0014 and 0019.
--
-- KEYS: for each item its fence record, then the lease keys of all items in order (1 to 64 each),
--       then for each item that has one its queue
-- ARGV: how many items, how many lease keys, ttl ms, cap ms (0: none), floor (a token's number;
--       0: none), then for each item
--         its owner (32 hex), if it asks for one name, on these terms, and for nothing else
--         or '+', owner, how many lease keys are its own, ttl, cap, floor, waiter ('': none),
--         fair ('1' | '0' | '': it has no queue), meta
-- Answers, one after the other, for each item:
--   token                            every name is the owner's now, for the ttl or the cap
--   1, token, granted ms             every name was the owner's before, and is for so long
--   0, n, (index, pttl, token)* n    held by others
--   2, ep, ask                       EPOCH: install an epoch above ep, and show this ask
--   3                                the owner's cap is used up
--   4                                the queue is full
--   7, code, message                 refused before anything was written
--   8, ms                            only earlier waiters are before us; the first of them counts
--                                    as dead in so many ms, unless it asks before
-- Everything of an item is read and checked before its first write: a script is not rolled back.
local COUNTERS, ALIVE_MS, QUEUE_MS, QUEUE_MAX = 4294967296, 3000, 60000, 128
local call, sub, find, format, floor_of = redis.call, string.sub, string.find, string.format, math.floor
local KEYS, ARGV = KEYS, ARGV
local items, leases = tonumber(ARGV[1]), tonumber(ARGV[2])
local ttl, cap, floor = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function digits(number)
  return format('%016.0f', number)
end

local function strange(what)
  return {7, 'WRONGTYPE', what .. ' holds something else'}
end

-- The clock moves inside a script, so it is read once. Key expiry does not move.
local time = call('TIME')
local now = time[1] * 1000 + floor_of(time[2] / 1000)
local born = '|' .. digits(now) .. '|'

-- What is stored, read at once; leases only if there is a key of any of the items. MGET passes over
-- other types, EXISTS does not: while it finds no more than MGET did, there are neither keys of other
-- types nor queues.
local there = call('EXISTS', unpack(KEYS, items + 1))
local upto = there == 0 and items or items + leases
local stored, known = call('MGET', unpack(KEYS, 1, upto)), 0
for i = items + 1, upto do
  known = known + (stored[i] and 1 or 0)
end
local quiet = there == known

-- A fence record counts only while the server is the one that it was bound to: the replication id
-- changes at every restart and every promotion (lease.md 4.3). So it is read in each call.
local server, bound -- its id, and how the records end that count here and have no ask
local function replid()
  if not server then
    local info = call('INFO', 'replication')
    local _, at = find(info, 'master_replid:', 1, true)
    server = at and sub(info, at + 1, at + 40)
    bound = server and '|' .. server
  end
  return server
end

-- The sixteen digits after those of `text`, which are `last`. To write out a large number is slow, so
-- only the lower nine are, which `%d` takes on every server.
local function after(text, last)
  local low = (last + 1) % 1000000000
  if low == 0 then
    return digits(last + 1)
  end
  return sub(text, 1, 7) .. format('%09d', low)
end

-- The token after that of a fence record, and above the floor. Nothing, if another epoch is needed.
-- A record is `token|rid`, and `|ask` while an epoch is asked for.
local function token_after(record, floor)
  if not record or not replid() or find(record, server, 18, true) ~= 18 then
    return nil
  end
  local last = tonumber(sub(record, 1, 16))
  if last < floor then
    if floor_of(last / COUNTERS) < floor_of(floor / COUNTERS) then
      return nil
    end
    last = floor
    record = digits(floor)
  end
  return last % COUNTERS < COUNTERS - 1 and after(record, last) or nil
end

local function cap_at(cap)
  return digits(cap > 0 and now + cap or 0)
end
local common = '|' .. cap_at(cap) .. born
local life = cap > 0 and cap < ttl and ARGV[4] or ARGV[3]

-- The common case: one name that is free, with an empty queue.
if items == 1 and quiet and known == 0 and ARGV[6] ~= '+' then
  local token = token_after(stored[1], floor)
  if token then
    call('SET', KEYS[1], token .. sub(stored[1], 17))
    call('SET', KEYS[2], ARGV[6] .. '|' .. token .. common, 'PX', life)
    return {token}
  end
end

-- Grants that are not written yet: fence records, and lease keys in order with what to store and for
-- how long. They are written before anything else is written or looked at, and at the end: the
-- records first, so that a script that stops repeats no token.
local minted, keys, values, lives, count = {}, {}, {}, {}, 0 -- `count` keys
local function write()
  local written = {}
  for fence, record in pairs(minted) do
    written[#written + 1], written[#written + 2] = fence, record
  end
  if #keys > 0 then
    call('MSET', unpack(written))
  end
  for i = 1, #keys do
    local key = keys[i]
    call('SET', key, values[key], 'PX', lives[i] or life)
  end
  minted, keys, lives, count = {}, {}, {}, 0
end

-- Takes the next token of a fence record, whose text is kept true here.
local records = {}
local function mint(fence, record, floor)
  record = records[fence] or record
  local token = token_after(record, floor)
  if token then
    record = token .. (#record == 57 and bound or sub(record, 17))
    records[fence], minted[fence] = record, record
  end
  return token
end

-- Who waits: waiter -> ticket:beat. A waiter whose last beat is old is dead. A waiter with a lower
-- ticket than ours is before us; without a ticket, all are.
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
      if not first or ticket < first then
        first, line.dies = ticket, beat + ALIVE_MS + 1 - now
      end
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
  for i = ask.first, ask.final do
    call('PEXPIRE', KEYS[i], granted)
  end
  if ask.waiter ~= '' and ask.queue then
    redis.pcall('HDEL', ask.queue, ask.waiter)
  end
  return {1, token, granted}
end

local function refuse(ask, ours, conflicts, line)
  if #ours > 0 then
    call('DEL', unpack(ours))
    for _, key in ipairs(ours) do
      values[key] = false
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
    quiet = false
  end
  if #conflicts == 0 then
    return {8, line.dies}
  end
  return {0, #conflicts / 3, unpack(conflicts)}
end

-- The record is of no use. The ask ties the epoch to this moment: a flush, a restart or an install
-- in between makes another one, so an epoch drawn before it is refused (docs/decisions/0007).
local function epoch(ask)
  local record = redis.pcall('GET', ask.fence)
  if record and (type(record) ~= 'string' or #record < 57) then
    return strange('a fence record')
  elseif not replid() then
    return {7, 'NOREPLID', 'INFO shows no master_replid inside a script'}
  end
  record = record or digits(0) .. '|' .. string.rep('-', 40)
  local shown = sub(record, 59)
  if sub(shown, 1, #server) ~= server then
    shown = server .. ':' .. time[1] .. '.' .. time[2]
    record = sub(record, 1, 57) .. '|' .. shown
    call('SET', ask.fence, record)
    records[ask.fence] = record
  end
  local above = math.max(tonumber(sub(record, 1, 16)), ask.floor)
  return {2, floor_of(above / COUNTERS), shown}
end

local function grant(ask, line)
  local token = mint(ask.fence, ask.record, ask.floor)
  if not token then
    return epoch(ask)
  end
  local value = ask.owner .. '|' .. token .. '|' .. cap_at(ask.cap) .. born .. ask.meta
  -- A text: a number would be written out anew for each key.
  local life = format('%.0f', ask.cap > 0 and math.min(ask.ttl, ask.cap) or ask.ttl)
  for i = ask.first, ask.final do
    local key = KEYS[i]
    count = count + 1
    keys[count], lives[count], values[key] = key, life, value
  end
  if line and line.mine then
    line.dead[#line.dead + 1] = ask.waiter
  end
  if line and #line.dead > 0 then
    write()
    call('HDEL', ask.queue, unpack(line.dead))
  end
  return {token}
end

-- Serves an item of any kind.
local function serve(ask)
  write()
  local ours, conflicts, token, cap_at = {}, {}, nil, 0
  for i = ask.first, ask.final do
    local key = KEYS[i]
    local value = stored[i]
    if values[key] ~= nil then
      value = call('GET', key)
    end
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
    elseif not quiet and call('EXISTS', key) == 1 then
      return strange('a lease key')
    end
  end
  if #ours > ask.final - ask.first then
    return again(ask, token, cap_at)
  end
  local waiting = not quiet and ask.queue and line(ask.queue, ask.waiter)
  if waiting == nil then
    return strange('a queue')
  end
  if #conflicts > 0 or waiting and waiting.blocked then
    return refuse(ask, ours, conflicts, waiting)
  end
  return grant(ask, waiting)
end

local answers, told, arg, key, queue = {}, 0, 6, items + 1, items + leases
local function next_item(item)
  local ask = {
    fence = KEYS[item], record = stored[item], owner = ARGV[arg], first = key, final = key,
    ttl = ttl, cap = cap, floor = floor, waiter = '', fair = '0', meta = '', queue = false,
  }
  if ask.owner == '+' then
    ask.owner, ask.final = ARGV[arg + 1], key + ARGV[arg + 2] - 1
    ask.ttl, ask.cap = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
    ask.floor, ask.waiter = tonumber(ARGV[arg + 5]), ARGV[arg + 6]
    ask.fair, ask.meta = ARGV[arg + 7], ARGV[arg + 8]
    arg = arg + 8
  end
  if ask.fair ~= '' then
    queue = queue + 1
    ask.queue = KEYS[queue]
  end
  arg, key = arg + 1, ask.final + 1
  return ask
end

for item = 1, items do
  local owner, lease, token = ARGV[arg], KEYS[key], nil
  if quiet and owner ~= '+' and not stored[key] and values[lease] == nil then
    token = mint(KEYS[item], stored[item], floor)
  end
  if token then
    count, told = count + 1, told + 1
    keys[count], values[lease], answers[told] = lease, owner .. '|' .. token .. common, token
    arg, key, queue = arg + 1, key + 1, queue + 1
  else
    for _, part in ipairs(serve(next_item(item))) do
      told = told + 1
      answers[told] = part
    end
  end
end
write()
return answers
