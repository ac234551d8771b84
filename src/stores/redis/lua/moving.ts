/** Every letter is added, changed and removed here, together with its indexes and counts. */
export const moving = String.raw`
local function listKey(one) return one and 'i:' .. digits[one.s] .. ':' .. one.q end

local function settledKey(one)
  if one and (one.z or one.s == 2) then return 's:' .. digits[one.s] .. ':' .. one.q end
end

-- The hash of the dedupeKey, while the letter is open.
local function heldKey(one) return one and one.dk and one.s ~= 2 and one.s ~= 5 and one.dk or nil end

-- Indexes of what never changes.
local function reindexOrigin(old, new)
  local one = new or old
  for key, value in pairs({ o = one.te, n = one.la, f = one.so }) do
    if value then put(key .. ':' .. value, one.id, new and 0 or false) end
  end
end

local function reindexTags(old, new)
  local id = (new or old).id
  if old and old.tg then eachTag(old.tg, function(tag) put('t:' .. tag, id, false) end) end
  if new and new.tg then eachTag(new.tg, function(tag) put('t:' .. tag, id, 0) end) end
end

-- Dedupe keys are read in the same script, so they are written at once.
local function holdKey(from, to, one)
  local key = P .. 'k:' .. one.q
  if from then call('ZREM', key, from .. ':' .. one.id) end
  if to then call('ZADD', key, '0', to .. ':' .. one.id) end
end

local function isCountedAlike(old, new)
  return old.s == new.s and old.c == new.c and old.p == new.p and old.y == new.y
    and old.g == new.g and old.tg == new.tg
end

-- old is nil for a new letter, new is nil for a removed one.
local function move(old, new)
  local one = new or old
  local id, isMove = one.id, old and new
  if not isMove or old.s ~= new.s then reindex(listKey(old), listKey(new), id, 0) end
  reindex(settledKey(old), settledKey(new), id, new and (new.z or '+inf'))
  if not isMove or old.g ~= new.g then
    reindex(old and 'g:' .. old.g, new and 'g:' .. new.g, id, 0)
  end
  if not isMove then reindexOrigin(old, new) end
  if old and old.x or new and new.x then
    reindex(old and old.x and 'x', new and new.x and 'x', id, new and new.x)
  end
  if (old and old.tg) ~= (new and new.tg) then reindexTags(old, new) end
  local from, to = heldKey(old), heldKey(new)
  if from ~= to then holdKey(from, to, one) end
  if not isMove or not isCountedAlike(old, new) then
    if old then count(old, -1) end
    if new then count(new, 1) end
  end
  local before, after
  if one.la then before, after = moveInLane(old, new) end
  place(old, new)
  if before and before ~= id then replace(before) end
  if after and after ~= id then replace(after) end
  if new and isDone(new) and not (old and isDone(old)) then free(id) end
end

-- Writes a change: line is its history entry, counts are the totals to add to, and ARGV has the
-- values: pairs from 'from' to 'to', then fields to clear up to 'last'.
local function write(old, change)
  local key = P .. 'l:' .. old.id
  local new = withValues(old, change)
  new.v = old.v + 1
  remember(new, change.line)
  call('HSET', key, 'v', new.v, 'h', new.h, unpack(ARGV, change.from, change.to))
  if new.om ~= old.om then call('HSET', key, 'om', new.om) end
  if change.last > change.to then call('HDEL', key, unpack(ARGV, change.to + 1, change.last)) end
  move(old, new)
  for action in string.gmatch(change.counts, '%d+') do total(action, new) end
end

-- The arguments of a change: entry, totals, number of values, number of fields to clear, and both.
-- Returns the change, and where the next one begins.
local function changeAt(at)
  local from = at + 4
  local to = from + tonumber(ARGV[at + 2]) - 1
  local last = to + tonumber(ARGV[at + 3])
  return { line = ARGV[at], counts = ARGV[at + 1], from = from, to = to, last = last }, last + 1
end

local function erase(old, action)
  local id = old.id
  if old.un then
    for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
      call('SREM', P .. 'v:' .. other, id)
    end
    put('y', id, false)
  end
  call('DEL', P .. 'l:' .. id, P .. 'p:' .. id)
  move(old, nil)
  if action then total(action, old) end
end

-- How many of these letters are not resolved. A new letter waits for them.
local function await(id, others)
  local unmet = 0
  for _, other in ipairs(others) do
    local found = read(other)
    if not found or not isDone(found) then
      unmet = unmet + call('SADD', P .. 'p:' .. id, other)
      call('SADD', P .. 'v:' .. other, id)
    end
  end
  if unmet == 0 then return nil end
  call('HSET', P .. 'l:' .. id, 'un', unmet)
  put('y', id, 0)
  return unmet
end

local none = { e = 0, n = 0, bo = 0 }

-- A new letter: its fields are pairs in ARGV.
local function insert(id, from, to, waits)
  call('HSET', P .. 'l:' .. id, unpack(ARGV, from, to))
  local new = withValues(none, { from = from, to = to, last = to })
  new.id = id
  if waits then new.un = await(id, waits) end
  move(nil, new)
  return new
end
`
