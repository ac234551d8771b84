/** The zsets that a letter belongs to. */
const expected = String.raw`
local function listsOf(one)
  local id = one.id
  local lists = { { listKey(one), 0, id }, { groupKey(one), 0, id } }
  local function add(key, at, member) lists[#lists + 1] = { key, at, member or id } end
  if settledKey(one) then add(settledKey(one), one.settled_at ~= unset and one.settled_at or math.huge) end
  if one.te then add('o:' .. one.te, 0) end
  if one.la then add('n:' .. one.la, 0) end
  if one.so then add('f:' .. one.so, 0) end
  if one.tg then eachTag(one.tg, function(tag) add('t:' .. tag, 0) end) end
  if expiryKey(one) then add('x', one.expires_at) end
  if heldKey(one) then add('k:' .. one.kind.q, 0, heldKey(one) .. ':' .. id) end
  if one.unmet > 0 then add('y', 0) end
  if one.la and isActive(one) then add(laneKey(one), 1 - one.state) end
  return lists
end

local function dueListsOf(one)
  local lists = {}
  local due, at = spotsOf(one)
  if due then lists[1] = { dueKey(one), due, one.id } end
  if at then lists[#lists + 1] = { 'w:' .. one.kind.q, at, one.id } end
  return lists
end
`

/**
 * ARGV: lists or due, 1 to repair, ids. Returns the ids of unreadable letters, and pairs of id and
 * the key where a letter is missing or has a wrong score.
 */
export const checkLetters = String.raw`
${expected}
local unreadable, missing = {}, {}
local repair = ARGV[2] == '1'

local function miss(id, name)
  missing[#missing + 1] = id
  missing[#missing + 1] = name
  return repair
end

-- A letter that others wait for must list them; a resolved one would have released them.
local function checkWaits(one)
  local id = one.id
  if call('SCARD', P .. 'p:' .. id) ~= one.unmet and miss(id, 'p:' .. id) then unwait(id) end
  for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
    local found = read(other)
    if found and isDone(found) then
      if miss(id, 'v:' .. other) then
        call('SREM', P .. 'p:' .. id, other)
        unwait(id)
      end
    elseif call('SISMEMBER', P .. 'v:' .. other, id) == 0 and miss(id, 'v:' .. other) then
      call('SADD', P .. 'v:' .. other, id)
    end
  end
end

-- Claims without queues read only those in q.
local function checkQueue(one, name)
  if call('SISMEMBER', P .. 'q', name) == 0 and miss(one.id, 'q') then call('SADD', P .. 'q', name) end
end

for at = 3, #ARGV do
  local id = ARGV[at]
  local one, bad = read(id)
  if bad then unreadable[#unreadable + 1] = id end
  if one and ARGV[1] == 'lists' and one.unmet > 0 then
    checkWaits(one)
    one = read(id)
  end
  local lists = one and (ARGV[1] == 'due' and dueListsOf(one) or listsOf(one)) or {}
  for _, list in ipairs(lists) do
    local key = P .. list[1]
    local found = call('ZSCORE', key, list[3])
    if not found or tonumber(found) ~= list[2] then
      if miss(id, list[1]) then
        call('ZADD', key, list[2] == math.huge and '+inf' or list[2], list[3])
      end
    end
    if ARGV[1] == 'due' and sub(list[1], 1, 2) == 'd:' then checkQueue(one, sub(list[1], 3)) end
  end
end
writeRows()
writeIndexes()
return { unreadable, missing }
`

/** ARGV: a zset, first and last rank, 1 to repair. Returns the members that belong to no letter. */
export const checkEntries = String.raw`
${expected}
local strays = {}
local name, key = ARGV[1], P .. ARGV[1]
local kind = sub(name, 1, 1)
for _, member in ipairs(call('ZRANGE', key, ARGV[2], ARGV[3])) do
  local id = kind == 'k' and string.match(member, '^[^:]*:(.*)$') or member
  local one, bad = read(id)
  local known = bad
  if one then
    for _, list in ipairs((kind == 'd' or kind == 'w') and dueListsOf(one) or listsOf(one)) do
      if list[1] == name and list[3] == member then known = true end
    end
  end
  if not known then
    strays[#strays + 1] = member
    if ARGV[4] == '1' then call('ZREM', key, member) end
  end
end
return strays
`

/**
 * ARGV: 1 to repair, names of keys that begin with p:, b: or m:. Finds those that belong to no
 * letter, and deletes them on repair. Returns their number.
 */
export const checkParts = String.raw`
local found = 0
for at = 2, #ARGV do
  if call('EXISTS', P .. 'l:' .. sub(ARGV[at], 3)) == 0 then
    found = found + 1
    if ARGV[1] == '1' then call('DEL', P .. ARGV[at]) end
  end
end
return found
`

/**
 * ARGV: a zset by id, where to start, how many. Returns the last id, the number of letters read,
 * and their counts: hash, field, number.
 */
export const recount = String.raw`
local ids = call('ZRANGEBYLEX', P .. ARGV[1], ARGV[2], '+', 'LIMIT', 0, tonumber(ARGV[3]))
for _, id in ipairs(ids) do
  local one = read(id)
  if one then count(one, 1) end
end
local sums = {}
for name, counts in pairs(countsByField()) do
  for field, n in pairs(counts) do
    sums[#sums + 1] = name
    sums[#sums + 1] = tostring(field)
    sums[#sums + 1] = n
  end
end
return { ids[#ids] or '', #ids, sums }
`

/**
 * ARGV: the number of scripts that moved letters so far, then hash, field and number. Writes only
 * if that number is current.
 */
export const setCounts = String.raw`
if (call('HGET', P .. 'meta', 'moves') or '0') ~= ARGV[1] then return 0 end
for at = 2, #ARGV, 3 do
  if ARGV[at + 2] == '0' then call('HDEL', P .. ARGV[at], ARGV[at + 1])
  else call('HSET', P .. ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
end
return 1
`
