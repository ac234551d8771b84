/** Every letter is added, changed and removed here, together with its indexes and counts. */
export const moving = String.raw`
local function listKey(one) return one and nameOf('i:', one.s, one.q) end

local function settledKey(one)
  if one and (one.z or one.s == 2) then return nameOf('s:', one.s, one.q) end
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
  reindex(settledKey(old), settledKey(new), id, new and (new.z or math.huge))
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

-- Parsed arguments, cached: changes of one batch have much in common.
local parsed = {}

local function wordsIn(text)
  local words = parsed[text]
  if not words then
    words = {}
    for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
    parsed[text] = words
  end
  return words
end

-- A change in ARGV: history entry, totals to add to, names of cells, their values, and how many
-- values follow: short strings, fields to set, fields to clear. Also returns where the next begins.
local function changeAt(at)
  local lengths = wordsIn(ARGV[at + 4])
  local strings = at + 5
  local from = strings + numbers[lengths[1]]
  local to = from + numbers[lengths[2]] - 1
  local last = to + numbers[lengths[3]]
  return {
    line = ARGV[at], counts = wordsIn(ARGV[at + 1]),
    names = wordsIn(ARGV[at + 2]), values = wordsIn(ARGV[at + 3]),
    strings = strings, from = from, to = to, last = last,
  }, last + 1
end

local function withValues(old, change)
  local new = copyOf(old)
  local values = change.values
  for n, name in ipairs(change.names) do new[name] = numbers[values[n]] end
  for n = change.strings, change.from - 1, 2 do new[ARGV[n]] = ARGV[n + 1] end
  if new.tg then
    new.k = 1
    if new.tg == '' then new.tg = false end
  end
  return new
end

local function write(old, history, change)
  local key = P .. 'l:' .. old.id
  local new = withValues(old, change)
  new.v = old.v + 1
  history = remember(new, history, change.line)
  call('HSET', key, 'r', rowOf(new), 'h', history, unpack(ARGV, change.from, change.to))
  if change.last > change.to then call('HDEL', key, unpack(ARGV, change.to + 1, change.last)) end
  move(old, new)
  for _, action in ipairs(change.counts) do total(action, new) end
end

local function erase(old, action)
  local id = old.id
  if old.un > 0 then
    for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
      call('SREM', P .. 'v:' .. other, id)
    end
    put('y', id, false)
  end
  call('DEL', P .. 'l:' .. id, P .. 'p:' .. id)
  move(old, nil)
  if action then total(action, old) end
end

-- Makes a new letter wait for those of these letters that are not resolved. Returns how many.
local function await(id, others)
  local unmet = 0
  for _, other in ipairs(others) do
    local found = read(other)
    if not found or not isDone(found) then
      unmet = unmet + call('SADD', P .. 'p:' .. id, other)
      call('SADD', P .. 'v:' .. other, id)
    end
  end
  return unmet
end

-- A new letter: its fields are pairs in ARGV, the row first.
local function insert(id, from, to, waits)
  local key = P .. 'l:' .. id
  call('HSET', key, unpack(ARGV, from, to))
  local new = letterIn(ARGV[from + 1], id)
  if waits then
    new.un = await(id, waits)
    if new.un > 0 then
      call('HSET', key, 'r', rowOf(new))
      put('y', id, 0)
      hasWaits = true
    end
  end
  move(nil, new)
  return new
end
`
