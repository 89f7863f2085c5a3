#!lua
-- Takes over what the ledger has committed, unless something newer is known: a note that is late or
-- comes twice brings no old state back. Rules: lease.md 6.2 and 6.5.
--
-- KEYS: the zone, as in shield_try.lua
-- ARGV: keep_ms, (byte of the kind: h, s or f, unit, version, remaining_ms, who)* for 1 to 100 units
-- Answers:  for each note 1 if it was taken, 0 if the zone knows something newer
local UNITS_MAX, SIZE, VERSION_DIGITS_MAX = 100, 5, 15

local keep_ms, count = tonumber(ARGV[1]), (#ARGV - 1) / SIZE
if count < 1 or count > UNITS_MAX or count % 1 ~= 0 then
  return redis.error_reply('ERR 1 to 100 notes')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local units = {}
for i = 1, count do
  units[i] = ARGV[SIZE * i - 2]
end
local known = redis.call('HMGET', KEYS[1], unpack(units))
local versions = {}
for i = 1, count do
  local version = known[i] and string.match(known[i], '^[chsf]|(%d+)|%d+|%d+$')
  local is_ours = version and #version <= VERSION_DIGITS_MAX
  versions[units[i]] = is_ours and tonumber(version) or 0
end

local answer, entries = {}, {}
for i = 1, count do
  local at, unit = SIZE * i - 3, units[i]
  local version = tonumber(ARGV[at + 2])
  answer[i] = version >= versions[unit] and 1 or 0
  if answer[i] == 1 then
    versions[unit] = version
    local ends = string.format('|%.0f|', now + ARGV[at + 3])
    entries[#entries + 1] = unit
    entries[#entries + 1] = string.char(ARGV[at]) .. '|' .. ARGV[at + 2] .. ends .. ARGV[at + 4]
  end
end
if #entries > 0 then
  redis.call('HSET', KEYS[1], unpack(entries))
  redis.call('PEXPIRE', KEYS[1], keep_ms)
end
return answer
