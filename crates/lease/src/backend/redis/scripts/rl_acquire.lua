#!lua
-- One node's vote in a Redlock: grants every name to one owner under a token that was minted
-- before, or tells why not. Specification: lease.md 5.4 and 6.3.
--
-- KEYS: (lease key, token record) for each name (1 to 64)
-- ARGV: owner (32 hex), ttl ms, cap ms (0: none), token (16 digits),
--       age ms that this server must have to vote (0: any), meta
-- Answers:
--   1, token, granted ms, again      every name is the owner's; again = 1: it was before
--   0, n, (index, pttl, token)* n    held by others
--   3                                the owner's cap is used up
--   5, last                          a token as high as ours was granted here before
--   6, age ms                        this server started too recently to vote
-- Everything is read and checked before the first write: a script is not rolled back.
local owner, ttl, cap, offered = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local least_age, meta = tonumber(ARGV[5]), ARGV[6]
local RECORD_MS = 86400000

local function digits(number)
  return string.format('%016.0f', number)
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local ours, conflicts, token, one, cap_at = {}, {}, nil, true, 0
for i = 1, #KEYS, 2 do
  local held = redis.call('GET', KEYS[i])
  if held then
    if #held < 84 then
      return redis.error_reply('WRONGTYPE a lease key holds something else')
    end
    local stored = string.sub(held, 34, 49)
    if string.sub(held, 1, 32) == owner then
      ours[#ours + 1] = KEYS[i]
      one = one and (not token or token == stored)
      token, cap_at = stored, tonumber(string.sub(held, 51, 66))
    else
      conflicts[#conflicts + 1] = (i - 1) / 2
      conflicts[#conflicts + 1] = redis.call('PTTL', KEYS[i])
      conflicts[#conflicts + 1] = stored
    end
  end
end

-- Asked again: the same token and a fresh ttl, within the cap. What it has stays if that is longer.
if one and #ours == #KEYS / 2 then
  local granted = ttl
  if cap_at > 0 then
    granted = math.min(ttl, cap_at - now)
  end
  if granted <= 0 then
    return {3}
  end
  local lives = {}
  for i = 1, #ours do
    lives[i] = redis.call('PTTL', ours[i])
  end
  for i = 1, #ours do
    redis.call('PEXPIRE', ours[i], granted, 'GT')
  end
  granted = math.max(granted, math.min(unpack(lives)))
  return {1, token, granted, 1}
end

if #conflicts > 0 then
  if #ours > 0 then
    redis.call('DEL', unpack(ours))
  end
  return {0, #conflicts / 3, unpack(conflicts)}
end

-- Who started a moment ago may have forgotten grants that are still alive elsewhere.
local age = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
if not age then
  return redis.error_reply('NOUPTIME INFO shows no uptime_in_seconds inside a script')
end
-- The start and the end of that time are both cut to whole seconds: it may be almost one too long.
age = math.max(age - 1, 0)
if age * 1000 < least_age then
  return {6, age * 1000}
end

-- A record is `token|owner`. The same token comes back only with the same owner: to a node that
-- lost the key of a lease that is still held.
for i = 2, #KEYS, 2 do
  local record = redis.call('GET', KEYS[i])
  if record then
    local last = string.sub(record, 1, 16)
    if last > offered or (last == offered and string.sub(record, 18) ~= owner) then
      return {5, last}
    end
  end
end

local granted = ttl
if cap > 0 then
  granted, cap_at = math.min(ttl, cap), now + cap
else
  cap_at = 0
end
local value = table.concat({owner, offered, digits(cap_at), digits(now), meta}, '|')
for i = 1, #KEYS, 2 do
  redis.call('SET', KEYS[i], value, 'PX', granted)
  redis.call('SET', KEYS[i + 1], offered .. '|' .. owner, 'PX', RECORD_MS)
end
return {1, offered, granted, 0}
