#!lua
-- Starts an epoch in a fence record. Specification: lease.md 4.3 and 6.3, docs/decisions/0007.
--
-- KEYS: fence record
-- ARGV: epoch, the ask that acquire answered
-- Answers:  1, epoch installed  |  0, ep refused: ask again
-- The ask must still be current: the epoch was drawn after this record was found unfit, and
-- nothing was flushed, restarted or installed since. Epoch 0 (unanchored) binds the record to this
-- server and keeps the count; it never takes over a record that has an epoch.
local COUNTERS = 4294967296
local epoch, ask = tonumber(ARGV[1]), ARGV[2]
local record = redis.call('GET', KEYS[1]) or ''
local token = string.match(record, '^(%d+)|') or '0'
local ep = math.floor(token / COUNTERS)
local rid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if not rid then
  return redis.error_reply('NOREPLID INFO shows no master_replid inside a script')
end
local stands = string.sub(record, 59) == ask and string.sub(ask, 1, #rid) == rid
if not stands or (epoch == 0 and ep > 0) or (epoch > 0 and epoch <= ep) then
  return {0, ep}
end
if epoch > 0 then
  token = epoch * COUNTERS
end
redis.call('SET', KEYS[1], string.format('%016.0f', token) .. '|' .. rid)
return {1, epoch}
