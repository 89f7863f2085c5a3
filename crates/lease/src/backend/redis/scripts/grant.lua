#!lua
-- Grants each item of a batch its one name, as long as nothing is unusual. All else is left to acquire.lua.
-- Specification: lease.md 6.3, docs/decisions/0270.
--
-- KEYS: fence record, mark of fair queues, the lease key of each item (1 to 32)
-- ARGV: ttl ms, cap ms (0: none), floor (a token's number; '': no tokens), owner of each item (32 hex)
-- Answers:
--   last ('': no tokens), then for each item that was not granted: its index, pttl, token of the holder
--     The n-th item that was granted has the token last + n. An item without a holder's token is left to
--     acquire.lua.
--   or nothing: nothing was written, and all items are left to acquire.lua
local call, pcall, find, format, sub = redis.call, redis.pcall, string.find, string.format, string.sub
local KEYS, ARGV = KEYS, ARGV

-- A record is `token|rid`, and longer while an epoch is asked for. It counts only while the server is the one
-- that it was bound to: the replication id changes at every restart and every promotion (lease.md 4.3). So
-- the id is read in each call.
local stored = call('MGET', KEYS[1], KEYS[2])
local record, text, head, low, step = stored[1], '', '0000000', 0, 0
if ARGV[3] ~= '' then
  if not record or #record < 57 then
    return {}
  end
  text = sub(record, 1, 16)
  local last = tonumber(text)
  head, low, step = sub(record, 1, 7), last % 1000000000, 1
  -- Only the lower nine digits are counted up here, and never past the end of an epoch's counter.
  if last < tonumber(ARGV[3]) or low + #KEYS > 999999999 or last % 4294967296 + #KEYS > 4294967295
    or not find(call('INFO', 'replication'), 'master_replid:' .. sub(record, 18, 57), 1, true) then
    return {}
  end
end
if stored[2] then
  return {}
end

-- The clock moves inside a script, so it is read once. Key expiry does not move.
local time = call('TIME')
local now, cap = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[2])
local function digits(number)
  return format('%07d%09d', math.floor(number / 1000000000), number % 1000000000)
end
local rest = '|' .. (cap > 0 and digits(now + cap) or '0000000000000000') .. '|' .. digits(now) .. '|'
local life = cap > 0 and cap < tonumber(ARGV[1]) and ARGV[2] or ARGV[1]

-- An error of one command must not stop the script before the record is written: a token would be given twice.
-- Every text that is made is hashed, so a token stands in no text of its own.
local answers, count, granted, counted = {text}, 1, 0, ''
for i = 3, #KEYS do
  local key, owner = KEYS[i], ARGV[i + 1]
  local number = format('%09d', low + step * granted + 1)
  local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'NX', 'PX', life)
  if done and done.ok then
    granted, counted = granted + 1, number
  else
    local held, left, by = pcall('GET', key), pcall('PTTL', key), ''
    if type(left) ~= 'number' then
      left = 0
    elseif type(held) == 'string' and #held >= 84 and find(held, owner, 1, true) ~= 1 then
      by = sub(held, 34, 49)
    end
    answers[count + 1], answers[count + 2], answers[count + 3] = i - 3, left, by
    count = count + 3
  end
end
if step * granted > 0 then
  call('SET', KEYS[1], head .. counted .. sub(record, 17))
end
return answers
