#!lua
-- Starts an epoch in a fence record. Specification: lease.md 4.3 and 6.3, docs/decisions/0007.
--
-- KEYS: fence record
-- ARGV: epoch, the ask that acquire answered
-- Answers:  1, epoch installed  |  0, ep refused: ask again
-- The ask must still stand: whoever drew the epoch did so after this record was found unfit, and
-- nothing was flushed, restarted or installed since. Epoch 0 (unanchored) binds the record to this
-- server and keeps the count; it never takes over a record that has an epoch.
local epoch = tonumber(ARGV[1])
local record = redis.call('HMGET', KEYS[1], 'ep', 'n', 'rid', 'ask')
local ep, n = tonumber(record[1] or '0'), record[2] or '0'
local rid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if not rid then
  return redis.error_reply('NOREPLID INFO shows no master_replid inside a script')
end
local stands = record[4] == ARGV[2] and string.sub(ARGV[2], 1, #rid) == rid
if not stands or (epoch == 0 and ep > 0) or (epoch > 0 and epoch <= ep) then
  return {0, ep}
end
if epoch > 0 then
  n = '0'
end
redis.call('HSET', KEYS[1], 'ep', string.format('%.0f', epoch), 'n', n, 'rid', rid)
redis.call('HDEL', KEYS[1], 'ask')
return {1, epoch}
