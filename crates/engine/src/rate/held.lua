#!lua
-- Keeps what one server counts of what an address holds of one event, and adds up what all servers
-- count. Rules: lease.md 6.2. At maxmemory it is refused, and requests go on unshared.
--
-- KEYS: the address's hash: field `server:event`, value `units:checkouts:end in ms`
-- ARGV: server, event, units, checkouts, milliseconds until none of it is held
-- Answers:  units, units of the event, checkouts
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ending = string.format('%.0f', now + tonumber(ARGV[5]))
redis.call('HSET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], ARGV[3] .. ':' .. ARGV[4] .. ':' .. ending)

local units, of_event, checkouts, last = 0, 0, 0, now
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local u, c, e = string.match(all[i + 1], '^(%d+):(%d+):(%d+)$')
  u, c, e = tonumber(u or '0'), tonumber(c or '0'), tonumber(e or '0')
  if e <= now or u + c == 0 then
    redis.call('HDEL', KEYS[1], all[i])
  else
    units, checkouts, last = units + u, checkouts + c, math.max(last, e)
    if string.match(all[i], ':(%d+)$') == ARGV[2] then
      of_event = of_event + u
    end
  end
end
if last > now then
  redis.call('PEXPIRE', KEYS[1], last - now)
end
return {units, of_event, checkouts}
