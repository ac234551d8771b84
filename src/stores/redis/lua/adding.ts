import { actionCode, parked } from '../../rows/codes.ts'
import { evenWhenFull } from './letter.ts'

/**
 * Finds and evicts the longest resolved letters. An index entry without a letter is removed, since
 * it would be found again and again.
 */
const resolvedOnes = String.raw`
local resolvedIn

-- The longest resolved letter; without a time, the first by id.
local function oldestResolved()
  if not resolvedIn then
    resolvedIn = {}
    for _, cell in ipairs(call('HKEYS', P .. 'cells')) do
      local code, queue = string.match(cell, '^(%d+):(.*)$')
      if code and floor(tonumber(code) / 512) == 2 then resolvedIn[queue] = true end
    end
  end
  -- This script may have added letters.
  for queue in pairs(groups) do resolvedIn[queue] = true end
  writeIndexes()
  local best, bestAt, bestKey
  for queue in pairs(resolvedIn) do
    local key = P .. 's:2:' .. queue
    local head = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local at = head[2] and tonumber(head[2])
    if at and (not best or at < bestAt or (at == bestAt and head[1] < best)) then
      best, bestAt, bestKey = head[1], at, key
    end
  end
  return best, bestKey
end

local function evictOldest()
  while true do
    local id, key = oldestResolved()
    if not id then return false end
    local one = read(id)
    if one and one.s == 2 then
      erase(one, ${actionCode('evict')})
      return true
    end
    call('ZREM', key, id)
  end
end
`

/**
 * ARGV: now, then for each letter id, extras, number of values, field names and values in turn. The
 * extras are empty or JSON: d dependencies, c [maxItems, 1 to evict], o the fields of an
 * occurrence. Returns moves, woke, and the result for each letter.
 */
export const add = String.raw`
local function holderOf(queue, hash)
  local found = call('ZRANGEBYLEX', P .. 'k:' .. queue, '[' .. hash .. ':', '(' .. hash .. ';',
    'LIMIT', 0, 1)[1]
  return found and sub(found, #hash + 2)
end

${resolvedOnes}
local maxEvicted = 500

-- Returns the number of letters evicted for one more; nil: no room. Second: the excess, if too many.
local function makeRoom(maxItems, evicts)
  local excess = standing(0, 4) + 1 - maxItems
  if excess <= 0 then return 0 end
  if not evicts or standing(2, 2) < excess then return nil end
  if excess > maxEvicted then return nil, excess end
  for _ = 1, excess do
    if not evictOldest() then return nil end
  end
  return excess
end

local function occur(holder, told)
  local old = read(holder)
  if not old then return nil end
  local key = P .. 'l:' .. holder
  local new = copyOf(old)
  new.v, new.oc, new.u = old.v + 1, (old.oc or 1) + 1, told.u
  new.c, new.g, new.sv, new.rc = told.c, told.g, told.s, told.r
  local state = digits[old.s]
  local line = told.h[1] .. state .. ',' .. state .. told.h[2]
  local history = remember(new, call('HGET', key, 'h'), line)
  call('HSET', key, 'r', rowOf(new), 'h', history, 'f', told.f)
  move(old, new)
  total(${actionCode('occur')}, new)
  return { 'k', holder, new.oc }
end

-- What must be decided before a letter with extras is added. Returns its result, or nil and the
-- number of letters that were evicted for it.
local function prepare(extras)
  if extras.o then
    local holder = holderOf(extras.o.q, extras.o.k)
    local told = holder and occur(holder, extras.o)
    if told then return told end
  end
  if not extras.c then return nil, 0 end
  local evicted, over = makeRoom(extras.c[1], extras.c[2] == 1)
  if over then return { 'm', over } end
  if not evicted then return { 'f' } end
  return nil, evicted
end

local function addOne(id, said, from, to)
  if call('EXISTS', P .. 'l:' .. id) == 1 then
    local same = read(id)
    return { 'i', id, same and same.oc or 1 }
  end
  local extras = said ~= '' and cjson.decode(said) or nil
  local evicted = 0
  if extras then
    local result
    result, evicted = prepare(extras)
    if result then return result end
  end
  local new = insert(id, from, to, extras and extras.d)
  total(${actionCode('capture')}, new)
  if new.s == ${parked} then total(${actionCode('park-at-capture')}, new) end
  return { 'a', evicted }
end

setNow(ARGV[1])
local results = { 0, 0 }
local at = 2
while at <= #ARGV do
  local from = at + 3
  local to = from + tonumber(ARGV[at + 2]) - 1
  results[#results + 1] = addOne(ARGV[at], ARGV[at + 1], from, to)
  at = to + 1
end
results[2] = woke and 1 or 0
results[1] = flush()
return results
`

/**
 * ARGV: how many, maxItems. Evicts that many of the longest resolved letters, but none for which
 * there is room. Returns moves, woke, the number of evicted letters.
 */
export const evict = String.raw`
${resolvedOnes}
${evenWhenFull}
local gone = 0
local excess = standing(0, 4) + 1 - tonumber(ARGV[2])
local most = math.min(tonumber(ARGV[1]), excess)
while gone < most and evictOldest() do gone = gone + 1 end
local wake = woke and 1 or 0
return { flush(), wake, gone }
`

/**
 * ARGV: for each letter id, version, number of letters that it waits for, number of values, those
 * ids, field names and values in turn. Returns moves, woke, and 1 for each letter that was written.
 */
export const keep = String.raw`
local results = { 0, 0 }
local at = 1
while at <= #ARGV do
  local id, waits = ARGV[at], {}
  for n = 1, tonumber(ARGV[at + 2]) do waits[n] = ARGV[at + 3 + n] end
  local from = at + 4 + #waits
  local to = from + tonumber(ARGV[at + 3]) - 1
  local same, bad = read(id)
  if bad or same and same.v >= tonumber(ARGV[at + 1]) then
    results[#results + 1] = 0
  else
    if same then erase(same, nil) end
    insert(id, from, to, waits)
    results[#results + 1] = 1
  end
  at = to + 1
end
results[2] = woke and 1 or 0
results[1] = flush()
return results
`

/** ARGV: pairs of field and value. */
export const keepTotals = String.raw`
for at = 1, #ARGV, 2 do call('HSET', P .. 'totals', ARGV[at], ARGV[at + 1]) end
return 1
`
