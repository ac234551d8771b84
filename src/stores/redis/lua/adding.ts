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
  for _, kind in pairs(kinds) do resolvedIn[kind.q] = true end
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
    if one and one.state == 2 then
      erase(one, ${actionCode('evict')})
      return true
    end
    call('ZREM', key, id)
  end
end
`

/**
 * Calls use(id, extras, row, body, fields) for each letter in ARGV: see `encodeLetters`. Nil means
 * that there are no fields.
 */
const records = String.raw`
local function eachLetter(use)
  for _, pack in ipairs(ARGV) do
    local at = 1
    while at <= #pack do
      local id, extras, row, body, count, following = struct.unpack('<I4c0I4c0I4c0I4c0I4', pack, at)
      local fields = count > 0 and {} or nil
      for n = 1, count do fields[n], following = struct.unpack('<I4c0', pack, following) end
      use(id, extras, row, body, fields)
      at = following
    end
  end
end
`

/**
 * ARGV: letters. Their extras are empty or JSON: d dependencies, c [maxItems, 1 to evict], o the
 * fields of an occurrence. Returns moves, woke, and a result for each letter that was not just
 * added: its number, and what happened.
 */
export const add = String.raw`
${records}
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
  local new = copyOf(old)
  new.version, new.occurrences, new.updated_at = old.version + 1, old.occurrences + 1, told.u
  new.category, new.severity, new.recoverability = told.c, told.s, told.r
  new.kind = kindOf(told.g, old.kind.q, old.kind.y)
  remember(new, told.h[1] .. old.state .. ',' .. old.state .. told.h[2])
  call('HSET', P .. 'm:' .. holder, 'f', told.f)
  keepRow(new)
  move(old, new)
  total(${actionCode('occur')}, new)
  return { 'k', holder, new.occurrences }
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

-- Returns the result for a letter, or nil if it was just added.
local areNew
local function addOne(id, said, row, body, fields)
  if rows[id] or not areNew and call('EXISTS', P .. 'l:' .. id) == 1 then
    local same = read(id)
    return { 'i', id, same and same.occurrences or 1 }
  end
  local extras = said ~= '' and cjson.decode(said) or nil
  local evicted = 0
  if extras then
    local result
    result, evicted = prepare(extras)
    if result then return result end
  end
  local new = insert(id, row, body, fields, extras and extras.d)
  total(${actionCode('capture')}, new)
  if new.state == ${parked} then total(${actionCode('park-at-capture')}, new) end
  return evicted > 0 and { 'a', evicted } or nil
end

local letters, keys = {}, {}
eachLetter(function(...)
  letters[#letters + 1] = { ... }
  keys[#letters] = P .. 'l:' .. (...)
end)
areNew = call('EXISTS', unpack(keys)) == 0
local results = { 0, 0 }
for n, letter in ipairs(letters) do
  local result = addOne(unpack(letter, 1, 5))
  if result then
    results[#results + 1] = n
    results[#results + 1] = result
  end
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
 * ARGV: letters. Their extras are JSON: v the version, d the ids that the letter waits for, r the
 * version that it replaces, if any. Returns moves, woke, and 1 for each letter that was written.
 */
export const keep = String.raw`
${records}
local results = { 0, 0 }
eachLetter(function(id, said, row, body, fields)
  local extras = cjson.decode(said)
  local same, bad = read(id)
  local isOther = extras.r and (not same or same.version ~= extras.r)
  if bad or isOther or same and same.version >= extras.v then
    results[#results + 1] = 0
    return
  end
  if same then erase(same, nil) end
  insert(id, row, body, fields, extras.d)
  results[#results + 1] = 1
end)
results[2] = woke and 1 or 0
results[1] = flush()
return results
`

/** ARGV: pairs of field and value. */
export const keepTotals = String.raw`
for at = 1, #ARGV, 2 do call('HSET', P .. 'totals', ARGV[at], ARGV[at + 1]) end
return 1
`
