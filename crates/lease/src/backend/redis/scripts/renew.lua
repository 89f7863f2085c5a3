#!lua flags=allow-oom
-- Gives each lease at least so much life from now on, never beyond its cap, to all of its keys or to none: it shortens
-- nothing, so ttl 0 changes nothing. Never creates.
-- Specification: lease.md 6.3. At maxmemory it must still run, or leases could not be kept.
--
-- KEYS: lease keys (1 to 100)
-- ARGV: (owner, token, ttl ms) for each key
-- Answers, for each key:  granted ms, ''  |  0, '' gone  |  -1, token taken  |  -2, '' capped
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Of which owner and token not all keys are theirs.
local answers, grants, broken = {}, {}, {}
for i = 1, #KEYS do
  local owner, token, ttl = ARGV[3 * i - 2], ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  -- One key of another type must not fail the renewals beside it.
  local held = redis.pcall('GET', KEYS[i])
  local answer, by = 0, ''
  if type(held) == 'string' and #held >= 84 then
    if string.sub(held, 1, 32) ~= owner or string.sub(held, 34, 49) ~= token then
      answer, by = -1, string.sub(held, 34, 49)
    else
      local cap_at = tonumber(string.sub(held, 51, 66))
      if cap_at > 0 and cap_at <= now then
        answer = -2
      else
        answer = ttl
        if cap_at > 0 then
          answer = math.min(ttl, cap_at - now)
        end
        grants[i] = answer
        -- What it has stays if that is longer: this may be the older of two questions.
        answer = math.max(answer, redis.call('PTTL', KEYS[i]))
      end
    end
  end
  if answer <= 0 then
    broken[owner .. token] = true
  end
  answers[2 * i - 1], answers[2 * i] = answer, by
end
for i = 1, #KEYS do
  if grants[i] and not broken[ARGV[3 * i - 2] .. ARGV[3 * i - 1]] then
    redis.call('PEXPIRE', KEYS[i], grants[i], 'GT')
  end
end
return answers
