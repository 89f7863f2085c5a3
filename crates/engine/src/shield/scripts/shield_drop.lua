#!lua flags=allow-oom
-- Gives claims up after the ledger refused: those of one holder, and nothing that was noted.
-- Rules: lease.md 6.2 and 6.5.
--
-- KEYS: the zone, as in shield_try.lua
-- ARGV: who, unit.. (1 to 100, each once)
-- Answers:  for each unit 1 if its claim was given up, 0 if there was none of this holder
local UNITS_MAX = 100

local who, units = ARGV[1], {unpack(ARGV, 2)}
if #units < 1 or #units > UNITS_MAX then
  return redis.error_reply('ERR 1 to 100 units')
end
local known = redis.call('HMGET', KEYS[1], unpack(units))
local answer, entries = {}, {}
for i, unit in ipairs(units) do
  local kind, version, owner = string.match(known[i] or '', '^([chsf])|(%d+)|%d+|(%d+)$')
  answer[i] = kind == 'c' and owner == who and 1 or 0
  if answer[i] == 1 then
    table.insert(entries, unit)
    -- With its version: a late note must still find it.
    table.insert(entries, 'f|' .. version .. '|0|0')
  end
end
if #entries > 0 then
  redis.call('HSET', KEYS[1], unpack(entries))
end
return answer
