#!lua
-- Starts an epoch in a fence record. Specification: lease.md 4.3 and 6.3, docs/decisions/0007.
--
-- KEYS: fence record
-- ARGV: epoch, the ask that acquire answered, the floor of that acquire (a token's number; 0: none)
-- Answers:  1, epoch installed  |  0, ep refused: ask again
-- The ask must still be current: the epoch was drawn after this record was found unfit, and
-- nothing was flushed, restarted or installed since. Epoch 0 (no source) binds the record to this server and goes
-- on from its clock, or from the last token or the floor if that is higher; it never takes over a record that has an
-- epoch of a source, which is below those of a clock.
local COUNTERS, CLOCK_EPOCHS, GRANTS_PER_MS = 4294967296, 400000, 2048
local epoch, ask = tonumber(ARGV[1]), ARGV[2]
local record = redis.call('GET', KEYS[1]) or ''
local token = string.match(record, '^(%d+)|') or '0'
local ep = math.floor(token / COUNTERS)
local rid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if not rid then
  return redis.error_reply('NOREPLID INFO shows no master_replid inside a script')
end
local stands = string.sub(record, 59) == ask and string.sub(ask, 1, #rid) == rid
if not stands or (epoch == 0 and ep > 0 and ep < CLOCK_EPOCHS) or (epoch > 0 and epoch <= ep) then
  return {0, ep}
end
if epoch > 0 then
  token = epoch * COUNTERS
else
  local time = redis.call('TIME')
  token = math.max(token, ARGV[3], (time[1] * 1000 + math.floor(time[2] / 1000)) * GRANTS_PER_MS)
  if token % COUNTERS == COUNTERS - 1 then
    token = token + 1 -- the counter is full: on with the next epoch
  end
end
redis.call('SET', KEYS[1], string.format('%016.0f', token) .. '|' .. rid)
return {1, epoch}
