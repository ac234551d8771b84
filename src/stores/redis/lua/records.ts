/**
 * ARGV: now, kind, id, value, expected version or empty. A record is stored as "VERSION
 * MILLISECONDS VALUE". Returns 1 if it was written.
 */
export const putRecord = String.raw`
setNow(ARGV[1])
local kind, id, expected = ARGV[2], ARGV[3], ARGV[5]
local old = call('HGET', P .. 'R:' .. kind, id)
local version = old and tonumber(string.match(old, '^(%d+) ')) or 0
if expected ~= '' and tonumber(expected) ~= version then return 0 end
call('HSET', P .. 'R:' .. kind, id, format('%d', version + 1) .. ' ' .. format('%.0f', nowMs) .. ' ' .. ARGV[4])
if not old then
  call('ZADD', P .. 'Z:' .. kind, 0, id)
  call('SADD', P .. 'K', kind)
end
return 1
`

/** ARGV: kind, id. Returns 1 if the record existed. */
export const dropRecord = String.raw`
local kind, id = ARGV[1], ARGV[2]
local gone = call('HDEL', P .. 'R:' .. kind, id)
call('ZREM', P .. 'Z:' .. kind, id)
if call('EXISTS', P .. 'R:' .. kind) == 0 then call('SREM', P .. 'K', kind) end
return gone
`

/** ARGV: kind, where to start in the order of ids, how many. Returns ids and records. */
export const listRecords = String.raw`
local kind = ARGV[1]
local ids = call('ZRANGEBYLEX', P .. 'Z:' .. kind, ARGV[2], '+', 'LIMIT', 0, tonumber(ARGV[3]))
local found = {}
for _, id in ipairs(ids) do
  found[#found + 1] = id
  found[#found + 1] = call('HGET', P .. 'R:' .. kind, id)
end
return found
`
