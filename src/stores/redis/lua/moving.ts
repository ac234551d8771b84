import { cell } from '../fields.ts'

/** Every letter is added, changed and removed here, together with its indexes and counts. */
export const moving = String.raw`
local function listKey(one) return nameOf(one.kind, 'i', one.state) end

local function settledKey(one)
  if one.settled_at ~= unset or one.state == 2 then
    return nameOf(one.kind, 's', one.state)
  end
end

-- The zsets of an expiry and of a group.
local function expiryKey(one) return one.expires_at ~= unset and 'x' or nil end
local function groupKey(one) return 'g:' .. one.kind.g end

-- The hash of the dedupeKey, while the letter is open.
local function heldKey(one) return one and one.dk and one.state ~= 2 and one.state ~= 5 and one.dk or nil end

-- Indexes of what never changes.
local function reindexOrigin(one, use)
  if one.te then use('o:' .. one.te, one.id, 0) end
  if one.la then use('n:' .. one.la, one.id, 0) end
  if one.so then use('f:' .. one.so, one.id, 0) end
end

local function reindexTags(old, new)
  if old and old.tg then eachTag(old.tg, function(tag) take('t:' .. tag, old.id) end) end
  if new and new.tg then eachTag(new.tg, function(tag) put('t:' .. tag, new.id, 0) end) end
end

-- Dedupe keys are read in the same script, so they are written at once.
local function holdKey(from, to, one)
  local key = P .. 'k:' .. one.kind.q
  if from then call('ZREM', key, from .. ':' .. one.id) end
  if to then call('ZADD', key, '0', to .. ':' .. one.id) end
end

local function isCountedAlike(old, new)
  return old.state == new.state and old.category == new.category and old.priority == new.priority
    and old.policy == new.policy and old.kind.g == new.kind.g and old.tg == new.tg
end

-- The indexes of fields that few letters have.
local function moveFields(old, new)
  local one = new or old
  if not old then reindexOrigin(new, put) elseif not new then reindexOrigin(old, take) end
  if (old and old.tg) ~= (new and new.tg) then reindexTags(old, new) end
  local from, to = heldKey(old), heldKey(new)
  if from ~= to then holdKey(from, to, one) end
  if one.la then return moveInLane(old, new) end
end

-- old is nil for a new letter, new is nil for a removed one.
local function move(old, new)
  local one = new or old
  local id = one.id
  hasMoved = true
  beginMove(id)
  local settled = new and settledKey(new)
  reindex(old and settledKey(old), settled, id,
    settled and (new.settled_at ~= unset and new.settled_at or math.huge))
  local expiry = new and expiryKey(new)
  reindex(old and expiryKey(old), expiry, id, expiry and new.expires_at)
  if not old or not new or old.state ~= new.state then
    reindex(old and listKey(old), new and listKey(new), id, 0)
  end
  if not old or not new or old.kind ~= new.kind then
    reindex(old and groupKey(old), new and groupKey(new), id, 0)
  end
  if not old or not new or not isCountedAlike(old, new) then
    if old then count(old, -1) end
    if new then count(new, 1) end
  end
  local before, after
  if one.parts == 2 then before, after = moveFields(old, new) end
  place(old, new)
  if before and before ~= id then replace(before) end
  if after and after ~= id then replace(after) end
  if new and isDone(new) and not (old and isDone(old)) then free(id) end
end

-- Parsed arguments, cached: changes of one batch have much in common.
local parsed = {}

-- The numbers of an argument. Null is false.
local function numbersIn(text)
  local numbers = parsed[text]
  if not numbers then
    numbers = {}
    for word in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(word) or false end
    parsed[text] = numbers
  end
  return numbers
end

-- What a change sets: the totals to add to, the indexes of cells, and how many values follow the
-- change: short strings, fields to set, fields to clear.
local shapes = {}

local function shapeIn(text)
  local shape = shapes[text]
  if not shape then
    local counts, cells, lengths = string.match(text, '^(.*)|(.*)|(.*)$')
    shape = { counts = numbersIn(counts), cells = numbersIn(cells), lengths = numbersIn(lengths) }
    shapes[text] = shape
  end
  return shape
end

-- A change in ARGV: history entry, shape, values of cells, and the values that follow. Also returns
-- where the next change begins.
local function changeAt(at)
  local shape = shapeIn(ARGV[at + 1])
  local lengths = shape.lengths
  local strings = at + 3
  local from = strings + lengths[1]
  local to = from + lengths[2] - 1
  local last = to + lengths[3]
  return {
    line = ARGV[at], counts = shape.counts, cells = shape.cells, values = numbersIn(ARGV[at + 2]),
    strings = strings, from = from, to = to, last = last,
  }, last + 1
end

-- Sets the short strings of a change.
local function setStrings(one, from, to)
  local g, y = one.kind.g, one.kind.y
  for n = from, to, 2 do
    local name, value = ARGV[n], ARGV[n + 1]
    if name == 'g' then g = value
    elseif name == 'y' then y = value
    elseif name == 'w' then one.worker = value
    else one.parts, one.tg = 2, value ~= '' and value end
  end
  if g ~= one.kind.g or y ~= one.kind.y then one.kind = kindOf(g, one.kind.q, y) end
end

local function write(old, change)
  local new = copyOf(old)
  local values = change.values
  for n, cell in ipairs(change.cells) do
    new[cell] = values[n] or (cell > ${cell['parts']} and unset or -1)
  end
  new.version = old.version + 1
  if change.from > change.strings then setStrings(new, change.strings, change.from - 1) end
  if change.to >= change.from then
    call('HSET', P .. 'm:' .. old.id, unpack(ARGV, change.from, change.to))
    if new.parts == 0 then new.parts = 1 end
  end
  if change.last > change.to and old.parts > 0 then
    call('HDEL', P .. 'm:' .. old.id, unpack(ARGV, change.to + 1, change.last))
  end
  remember(new, change.line)
  keepRow(new)
  move(old, new)
  for _, action in ipairs(change.counts) do total(action, new) end
end

local function erase(old, action)
  local id = old.id
  if old.unmet > 0 then
    for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
      call('SREM', P .. 'v:' .. other, id)
    end
    writeIndexes()
    take('y', id)
  end
  call('DEL', P .. 'l:' .. id, P .. 'b:' .. id, P .. 'm:' .. id, P .. 'p:' .. id)
  rows[id] = false
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

-- A new letter, with the fields of m:ID as pairs.
local function insert(id, row, body, fields, waits)
  if fields then call('HSET', P .. 'm:' .. id, unpack(fields)) end
  local new = letterIn(row, id)
  if waits then
    new.unmet = await(id, waits)
    if new.unmet > 0 then
      put('y', id, 0)
      hasWaits = true
    end
  end
  bodies[id] = body
  if new.unmet > 0 then keepRow(new) else setRow(id, row) end
  move(nil, new)
  return new
end
`
