/**
 * Where letters wait: claimable at their time, or held by their lane or by their dependencies. A
 * lane has one letter in flight at a time, which stays claimable in case its lease lapses;
 * otherwise its oldest active letter is claimable. So only the first letter of a lane's zset can be
 * claimable, and a change there concerns at most the previous first letter and the new one. Lanes
 * are read in the same script, so they are written at once.
 */
export const places = String.raw`
local known = {}

local function isActive(one) return one.state < 2 end
local function isDone(one) return one.state == 2 or one.archived_from == 2 end

local function laneKey(one) return 'a:' .. #one.kind.q .. ':' .. one.kind.q .. ':' .. one.la end

local function isHeld(one)
  if one.unmet > 0 then return true end
  return one.la and call('ZRANGE', P .. laneKey(one), 0, 0)[1] ~= one.id
end

local function dueKey(one) return nameOf(one.kind, 'd', one.priority) end

-- Whether a letter may be in w.
local function mayWait(one)
  return one.retry_at ~= unset and (one.state ~= 0 or one.la or one.unmet > 0)
end

-- When a claim may take the letter, if ever, otherwise its retryAt.
local function spotsOf(one)
  local at = one.retry_at ~= unset and one.retry_at or nil
  if one.state == 0 and not isHeld(one) then return at or one.captured_at end
  if one.state ~= 1 then return nil, at end
  return one.leased_until ~= unset and one.leased_until or one.updated_at, at
end

-- Updates where a letter waits. old is nil for a new letter, new is nil for a removed one.
local function place(old, new)
  local id = (new or old).id
  local due, at, key
  if new then
    due, at = spotsOf(new)
    key = due and dueKey(new)
    if due and new.state == 0 then woke = true end
  end
  if old then
    local left = isActive(old) and dueKey(old)
    if left and left ~= key then take(left, id) end
    if not at and mayWait(old) then take('w:' .. old.kind.q, id) end
  end
  if key then
    put(key, id, due)
    if not known[key] then
      known[key] = true
      call('SADD', P .. 'q', sub(key, 3))
    end
  end
  if at then put('w:' .. new.kind.q, id, at) end
end

local function replace(id)
  local one = read(id)
  if not one then return end
  beginMove(id)
  place(one, one)
end

-- Updates a letter in its lane. Returns the previous and the new first letter, if they differ.
local function moveInLane(old, new)
  local from = old and isActive(old) and old.state
  local to = new and isActive(new) and new.state
  if from == to then return end
  local one = new or old
  local key = P .. laneKey(one)
  local before = call('ZRANGE', key, 0, 0)[1]
  if to then call('ZADD', key, 1 - to, one.id) else call('ZREM', key, one.id) end
  local after = call('ZRANGE', key, 0, 0)[1]
  if before ~= after then return before, after end
end

-- The letter waits for fewer letters than before.
local function unwait(id)
  local old = read(id)
  if not old then return end
  local new = copyOf(old)
  new.unmet = call('SCARD', P .. 'p:' .. id)
  keepRow(new)
  if new.unmet > 0 then return end
  beginMove(id)
  take('y', id)
  place(old, new)
end

-- Whether letters wait for others: read once, since few stores have dependencies.
local hasWaits

-- The letter is resolved: releases the letters that waited for it.
local function free(id)
  if hasWaits == nil then hasWaits = call('EXISTS', P .. 'y') == 1 end
  if not hasWaits then return end
  local waiting = call('SMEMBERS', P .. 'v:' .. id)
  if #waiting == 0 then return end
  call('DEL', P .. 'v:' .. id)
  for _, other in ipairs(waiting) do
    if call('SREM', P .. 'p:' .. other, id) == 1 then unwait(other) end
  end
end
`
