import { col } from '../columns.ts'

/** The zsets that a letter belongs to, according to its row. */
const expected = String.raw`
local function listsOf(row)
  local id = row[${col.id}]
  local lists = { { 'i:' .. shelf(row), 0, id }, { 'g:' .. row[${col.fingerprint}], 0, id } }
  local function add(key, at, member) lists[#lists + 1] = { key, tonumber(at), member or id } end
  local settled, settledAt = settledIn(row)
  if settled then add(settled, settledAt) end
  if row[${col.reason}] then add('r:' .. row[${col.reason}], 0) end
  if row[${col.tenant}] then add('o:' .. row[${col.tenant}], 0) end
  if row[${col.lane}] then add('n:' .. row[${col.lane}], 0) end
  for _, tag in ipairs(row[${col.tags}] or {}) do add('t:' .. tag, 0) end
  local source = fieldsOf(id, 's')[1]
  if source then add('f:' .. source, 0) end
  local ends, endsAt = expiryIn(row)
  if ends then add(ends, endsAt) end
  local key = keyIn(row)
  if key then add('k:' .. row[${col.queue}], 0, key .. ':' .. id) end
  if row[${col.dependent}] == 1 and call('EXISTS', P .. 'p:' .. id) == 1 then add('y', 0) end
  if row[${col.lane}] and isActive(row) then
    add(sub(laneKey(row), #P + 1), 1 - row[${col.state}])
  end
  return lists
end

local function dueListsOf(row)
  local id = row[${col.id}]
  local lists = {}
  local due, at = spotsOf(row)
  if due then lists[1] = { 'd:' .. dueKey(row), due, id } end
  if at then lists[#lists + 1] = { 'w:' .. row[${col.queue}], at, id } end
  return lists
end
`

/**
 * ARGV: lists or due, 1 to repair, ids. Returns the ids of unreadable rows, and pairs of id and the
 * key where a letter is missing or has a wrong score.
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
local function checkWaits(row)
  local id = row[${col.id}]
  local freed = false
  for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
    local found = read(other)
    if found and isDone(found) then
      if miss(id, 'v:' .. other) then
        call('SREM', P .. 'p:' .. id, other)
        freed = true
      end
    elseif call('SISMEMBER', P .. 'v:' .. other, id) == 0 and miss(id, 'v:' .. other) then
      call('SADD', P .. 'v:' .. other, id)
    end
  end
  if freed and call('EXISTS', P .. 'p:' .. id) == 0 then
    call('ZREM', P .. 'y', id)
    replace(id)
  end
end

-- Claims without queues read only those in q.
local function checkQueue(row, name)
  if call('SISMEMBER', P .. 'q', name) == 0 and miss(row[${col.id}], 'q') then
    call('SADD', P .. 'q', name)
  end
end

for at = 3, #ARGV do
  local id = ARGV[at]
  local row, bad = read(id)
  if not row and bad then unreadable[#unreadable + 1] = id end
  if not row and not bad and call('EXISTS', P .. 'l:' .. id) == 1 then
    unreadable[#unreadable + 1] = id
  end
  if row and ARGV[1] == 'lists' and row[${col.dependent}] == 1 then checkWaits(row) end
  local lists = row and (ARGV[1] == 'due' and dueListsOf(row) or listsOf(row)) or {}
  for _, list in ipairs(lists) do
    local key = P .. list[1]
    local found = call('ZSCORE', key, list[3])
    if not found or tonumber(found) ~= list[2] then
      if miss(id, list[1]) then
        call('ZADD', key, list[2] == math.huge and '+inf' or score(list[2]), list[3])
      end
    end
    if ARGV[1] == 'due' and sub(list[1], 1, 2) == 'd:' then checkQueue(row, sub(list[1], 3)) end
  end
end
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
  local row, bad = read(id)
  local known = not row and bad
  if row then
    for _, list in ipairs((kind == 'd' or kind == 'w') and dueListsOf(row) or listsOf(row)) do
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
 * ARGV: names after h: and p: in turn. Finds those that belong to no letter, and deletes them on
 * repair. Returns their number.
 */
export const checkBelongings = String.raw`
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
  local row = read(id)
  if row then count(row, 1) end
end
local sums = {}
for name, counts in pairs({ cells = cells, groups = groups, tags = tags, states = states }) do
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
