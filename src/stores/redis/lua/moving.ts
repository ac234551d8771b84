import { maxHistory } from '../../../letter/history.ts'
import { col } from '../columns.ts'

/** Every letter is added, changed and removed here, together with its indexes and counts. */
export const moving = String.raw`
local function listed(name, from, to, id)
  if from == to then return end
  if from then call('ZREM', P .. name .. from, id) end
  if to then call('ZADD', P .. name .. to, '0', id) end
end

local function timed(fromKey, from, toKey, to, id)
  if fromKey == toKey and from == to then return end
  if fromKey and fromKey ~= toKey then call('ZREM', P .. fromKey, id) end
  if toKey then call('ZADD', P .. toKey, to, id) end
end

local function shelf(row) return row and digits[row[${col.state}]] .. ':' .. row[${col.queue}] end

local function settledIn(row)
  if not row then return nil end
  local at = row[${col.settledAt}]
  if not at and row[${col.state}] ~= 2 then return nil end
  return 's:' .. shelf(row), at and score(msOf(at)) or '+inf'
end

local function expiryIn(row)
  if row and row[${col.expiresAt}] then return 'x', score(msOf(row[${col.expiresAt}])) end
end

local function keyIn(row)
  local state = row and row[${col.state}]
  return row and row[${col.dedupe}] and state ~= 2 and state ~= 5 and row[${col.dedupe}] or nil
end

local function at(row, n) return row and row[n] or nil end

local function retag(id, from, to)
  local kept = {}
  for _, tag in ipairs(to) do kept[tag] = true end
  for _, tag in ipairs(from) do
    if kept[tag] then kept[tag] = false else call('ZREM', P .. 't:' .. tag, id) end
  end
  for _, tag in ipairs(to) do
    if kept[tag] then call('ZADD', P .. 't:' .. tag, '0', id) end
  end
end

local function move(old, new)
  local row = new or old
  local id = row[${col.id}]
  listed('i:', shelf(old), shelf(new), id)
  local fromKey, from = settledIn(old)
  local toKey, to = settledIn(new)
  timed(fromKey, from, toKey, to, id)
  listed('g:', at(old, ${col.fingerprint}), at(new, ${col.fingerprint}), id)
  listed('r:', at(old, ${col.reason}), at(new, ${col.reason}), id)
  listed('o:', at(old, ${col.tenant}), at(new, ${col.tenant}), id)
  listed('n:', at(old, ${col.lane}), at(new, ${col.lane}), id)
  local endFrom, endFromAt = expiryIn(old)
  local endTo, endToAt = expiryIn(new)
  timed(endFrom, endFromAt, endTo, endToAt, id)
  local oldTags, newTags = at(old, ${col.tags}), at(new, ${col.tags})
  if oldTags ~= newTags then retag(id, oldTags or {}, newTags or {}) end
  local held, holds = keyIn(old), keyIn(new)
  if held ~= holds then
    local key = P .. 'k:' .. row[${col.queue}]
    if held then call('ZREM', key, held .. ':' .. id) end
    if holds then call('ZADD', key, '0', holds .. ':' .. id) end
  end
  if old then count(old, -1) end
  if new then count(new, 1) end
  local before, after = moveInLane(old, new)
  place(old, new)
  if before and before ~= id then replace(before) end
  if after and after ~= id then replace(after) end
  if new and isDone(new) and not (old and isDone(old)) then free(id) end
end

local maxHistory = ${maxHistory}

-- Adds a history entry to a row to be written; beyond the bound, the second oldest is omitted.
local function remember(row, entry)
  local key = P .. 'h:' .. row[${col.id}]
  call('RPUSH', key, entry)
  row[${col.entries}] = row[${col.entries}] + 1
  local excess = row[${col.entries}] - row[${col.omitted}] - maxHistory
  if excess <= 0 then return end
  row[${col.omitted}] = row[${col.omitted}] + excess
  if row[${col.first}] == 1 then
    call('LTRIM', key, excess, -1)
  else
    local first = call('LINDEX', key, 0)
    call('LTRIM', key, excess + 1, -1)
    call('LPUSH', key, first)
  end
end

-- Writes the new state of a letter, and returns it.
local function rewrite(old, new, bad, rest)
  local key = P .. 'l:' .. new[${col.id}]
  local text = rowText(new, bad)
  if rest then call('HSET', key, 'r', text, 'x', sealed(rest)) else call('HSET', key, 'r', text) end
  move(old, new)
  return text
end

local function erase(row, action)
  local id = row[${col.id}]
  if row[${col.dependent}] == 1 then
    for _, other in ipairs(call('SMEMBERS', P .. 'p:' .. id)) do
      call('SREM', P .. 'v:' .. other, id)
    end
    call('ZREM', P .. 'y', id)
  end
  local source = fieldsOf(id, 's')[1]
  if source then call('ZREM', P .. 'f:' .. source, id) end
  call('DEL', P .. 'l:' .. id, P .. 'h:' .. id, P .. 'p:' .. id)
  move(row, nil)
  if action then total(action, row) end
end

-- The source id of a letter never changes.
local function setSource(id, source)
  call('HSET', P .. 'l:' .. id, 's', source)
  call('ZADD', P .. 'f:' .. source, '0', id)
end

-- Extras: h entries after the first, d dependencies, s source id, e 1 if edited bytes are given.
local function insert(row, rowSealed, rest, origin, bytes, extras, edited)
  local id = row[${col.id}]
  local key = P .. 'l:' .. id
  if edited then call('HSET', key, 'r', rowSealed, 'x', rest, 'o', origin, 'b', bytes, 'e', edited)
  else call('HSET', key, 'r', rowSealed, 'x', rest, 'o', origin, 'b', bytes) end
  if extras then
    if extras.s then setSource(id, extras.s) end
    for _, entry in ipairs(extras.h or {}) do call('RPUSH', P .. 'h:' .. id, entry) end
    for _, other in ipairs(extras.d or {}) do
      local found = read(other)
      if not found or not isDone(found) then
        call('SADD', P .. 'p:' .. id, other)
        call('SADD', P .. 'v:' .. other, id)
        call('ZADD', P .. 'y', '0', id)
      end
    end
  end
  move(nil, row)
end
`
