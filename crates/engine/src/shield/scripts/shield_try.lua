#!lua
-- Claims units of one zone for a moment, unless another holder is known to have one: all of them or
-- none. It never decides: a request that passes asks the ledger. Rules: lease.md 6.2 and 6.5. At maxmemory
-- it is refused, and everybody passes.
--
-- KEYS: the zone, a hash: unit -> kind|version|until_ms|who, kind being c claimed, h held, s sold, f free
-- ARGV: who, claim_ms, keep_ms, 1 to claim or 0 to look only, unit.. (1 to 100, each once)
-- Answers:  1, claim_ms  nothing is known against it, and it is claimed for so long
--           1, 0         nothing is known against it
--           2            `who` holds one of them: the ledger must see it in any case
--           0, (index, byte of the kind, remaining_ms, version)*  every conflict; the first unit is 1
local UNITS_MAX, VERSION_DIGITS_MAX = 100, 15

local who, claims = ARGV[1], ARGV[4] == '1'
local claim_ms, keep_ms = tonumber(ARGV[2]), tonumber(ARGV[3])
local units = {unpack(ARGV, 5)}
if #units < 1 or #units > UNITS_MAX then
  return redis.error_reply('ERR 1 to 100 units')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], unpack(units))

local conflicts, versions = {0}, {}
for i = 1, #units do
  local kind, version, ends, owner
  if known[i] then
    kind, version, ends, owner = string.match(known[i], '^([chsf])|(%d+)|(%d+)|(%d+)$')
  end
  if not kind or #version > VERSION_DIGITS_MAX then
    kind, version, ends = 'f', '0', 0
  end
  versions[i] = version
  local left = ends - now
  -- What ends later than any belief may was written by another clock, or is no entry of ours.
  if left > (kind == 'c' and claim_ms or keep_ms) then
    left = 0
  end
  if left > 0 and kind == 'h' and owner == who then
    return {2}
  elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then
    local n = #conflicts
    conflicts[n + 1], conflicts[n + 2] = i, string.byte(kind)
    conflicts[n + 3], conflicts[n + 4] = left, tonumber(version)
  end
end
if #conflicts > 1 then
  return conflicts
elseif not claims then
  return {1, 0}
end
local ends, entries = string.format('|%.0f|', now + claim_ms) .. who, {}
for i = 1, #units do
  -- The version stays: a claim says nothing new about the unit.
  entries[2 * i - 1], entries[2 * i] = units[i], 'c|' .. versions[i] .. ends
end
redis.call('HSET', KEYS[1], unpack(entries))
redis.call('PEXPIRE', KEYS[1], keep_ms)
return {1, claim_ms}
