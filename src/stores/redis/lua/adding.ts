import { actionCode, parked } from '../../rows/codes.ts'
import { col } from '../columns.ts'
import { evenWhenFull } from './rows.ts'

/**
 * Finds and evicts the longest resolved letters. An index entry without a letter is removed, since
 * it would be found again and again.
 */
const resolvedOnes = String.raw`
local resolvedIn
local function note(cell)
  local code, queue = string.match(cell, '^(%d+):(.*)$')
  if code and floor(tonumber(code) / 512) == 2 then resolvedIn[queue] = true end
end

-- The longest resolved letter; without a time, the first by id.
local function oldestResolved()
  if not resolvedIn then
    resolvedIn = {}
    for _, cell in ipairs(call('HKEYS', P .. 'cells')) do note(cell) end
  end
  -- This script may have added letters.
  for cell in pairs(cells) do note(cell) end
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
    local row = read(id)
    if row and row[${col.state}] == 2 then
      erase(row, ${actionCode('evict')})
      return true
    end
    call('ZREM', key, id)
  end
end
`

/**
 * ARGV: now, then for each letter row, rest, origin, bytes, extras. The extras also have c
 * [maxItems, 1 to evict] and, with a dedupeKey, o: the fields of an occurrence. Returns moves,
 * woke, and the result for each letter.
 */
export const add = String.raw`
local function holderOf(row)
  if not row[${col.dedupe}] then return nil end
  local hash = row[${col.dedupe}]
  local found = call('ZRANGEBYLEX', P .. 'k:' .. row[${col.queue}], '[' .. hash .. ':',
    '(' .. hash .. ';', 'LIMIT', 0, 1)[1]
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

local function occur(holder, row, told)
  local old, bad = read(holder)
  if not old then return nil end
  local new = copyOf(old)
  new[${col.category}] = row[${col.category}]
  new[${col.fingerprint}] = row[${col.fingerprint}]
  new[${col.version}] = old[${col.version}] + 1
  new[${col.updatedAt}] = row[${col.deadLetteredAt}]
  local raw = fieldsOf(holder, 'r', 'x')[2]
  local rest = restIn(raw)
  local occurrences = occurrencesIn(raw)
  if rest then
    occurrences = occurrences + 1
    rest = patchRest(rest, {
      occurrences = format('%d', occurrences),
      failure = told.f, severity = told.s, recoverability = told.r,
    })
  end
  local state = stateNames[old[${col.state}] + 1]
  remember(new, told.h .. ',"from":"' .. state .. '","to":"' .. state .. '"}')
  rewrite(old, new, bad, rest)
  total(${actionCode('occur')}, new)
  return { 'k', holder, occurrences }
end

local function addOne(at)
  local text, rest, origin, bytes, said = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local row = cjson.decode(text)
  local id = row[${col.id}]
  local extras = said ~= '' and cjson.decode(said) or nil
  local key = P .. 'l:' .. id
  if call('EXISTS', key) == 1 then
    return { 'i', id, occurrencesIn(fieldsOf(id, 'r', 'x')[2]) }
  end
  local holder = holderOf(row)
  local told = holder and occur(holder, row, extras.o)
  if told then return told end
  local evicted = 0
  if extras and extras.c and row[${col.state}] ~= 5 then
    local over
    evicted, over = makeRoom(extras.c[1], extras.c[2] == 1)
    if over then return { 'm', over } end
    if not evicted then return { 'f' } end
  end
  insert(row, sealed(text), rest, origin, bytes, extras)
  total(${actionCode('capture')}, row)
  if row[${col.state}] == ${parked} then total(${actionCode('park-at-capture')}, row) end
  return { 'a', evicted }
end

setNow(ARGV[1])
local results = { 0, 0 }
for at = 2, #ARGV, 5 do results[#results + 1] = addOne(at) end
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
 * ARGV: now, then for each letter row, rest, origin, bytes, extras, edited bytes. Returns moves,
 * woke, and 1 for each letter that was written.
 */
export const keep = String.raw`
setNow(ARGV[1])
local results = { 0, 0 }
for at = 2, #ARGV, 6 do
  local row = cjson.decode(ARGV[at])
  local extras = cjson.decode(ARGV[at + 4])
  local same, bad = read(row[${col.id}])
  if bad and not same or same and same[${col.version}] >= row[${col.version}] then
    results[#results + 1] = 0
  else
    if same then erase(same, nil) end
    insert(row, sealed(ARGV[at]), ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], extras,
      extras.e == 1 and ARGV[at + 5] or nil)
    results[#results + 1] = 1
  end
end
results[2] = woke and 1 or 0
results[1] = flush()
return results
`

/** ARGV: pairs of id and source id. Missing letters are skipped. */
export const setSources = String.raw`
for at = 1, #ARGV, 2 do
  if call('EXISTS', P .. 'l:' .. ARGV[at]) == 1 then setSource(ARGV[at], ARGV[at + 1]) end
end
return 1
`

/** ARGV: pairs of field and value. */
export const keepTotals = String.raw`
for at = 1, #ARGV, 2 do call('HSET', P .. 'totals', ARGV[at], ARGV[at + 1]) end
return 1
`
