import { col } from '../columns.ts'

/**
 * Where letters wait: claimable at their time, or held by their lane or by their dependencies. A
 * lane has one letter in flight at a time, which stays claimable in case its lease lapses;
 * otherwise its oldest active letter is claimable. So only the first letter of a lane's zset can be
 * claimable, and a change there concerns at most the previous first letter and the new one.
 */
export const places = String.raw`
local known = {}

local function isActive(row) return row[${col.state}] < 2 end
local function isDone(row) return row[${col.state}] == 2 or row[${col.done}] == 1 end

local function laneKey(row)
  local queue = row[${col.queue}]
  return P .. 'a:' .. digits[#queue] .. ':' .. queue .. ':' .. row[${col.lane}]
end

local function isHeld(row)
  local id = row[${col.id}]
  if row[${col.dependent}] == 1 and call('EXISTS', P .. 'p:' .. id) == 1 then return true end
  return row[${col.lane}] and call('ZRANGE', laneKey(row), 0, 0)[1] ~= id
end

local function dueKey(row) return digits[row[${col.priority}]] .. ':' .. row[${col.queue}] end

-- Whether a letter with a retryAt may be in w.
local function mayWait(row)
  return row[${col.retryAt}]
    and (row[${col.state}] ~= 0 or row[${col.lane}] or row[${col.dependent}] == 1)
end

-- When a claim may take the letter, if ever, otherwise its retryAt.
local function spotsOf(row)
  local state, retryAt = row[${col.state}], row[${col.retryAt}]
  if state == 0 and not isHeld(row) then return msOf(retryAt or row[${col.deadLetteredAt}]) end
  local due = state == 1 and msOf(row[${col.leasedUntil}] or row[${col.updatedAt}]) or nil
  return due, retryAt and msOf(retryAt) or nil
end

-- Updates where a letter waits. old is nil for a new letter, new is nil for a removed one.
local function place(old, new)
  local id = (new or old)[${col.id}]
  local due, at, key
  if new then
    due, at = spotsOf(new)
    key = due and dueKey(new)
    if due and new[${col.state}] == 0 then woke = true end
  end
  if old then
    local left = isActive(old) and dueKey(old)
    if left and left ~= key then call('ZREM', P .. 'd:' .. left, id) end
    if not at and mayWait(old) then call('ZREM', P .. 'w:' .. old[${col.queue}], id) end
  end
  if key then
    call('ZADD', P .. 'd:' .. key, score(due), id)
    if not known[key] then
      known[key] = true
      call('SADD', P .. 'q', key)
    end
  end
  if at then call('ZADD', P .. 'w:' .. new[${col.queue}], score(at), id) end
end

local function replace(id)
  local row = read(id)
  if row then place(row, row) end
end

-- Updates a letter in its lane. Returns the previous and the new first letter, if they differ.
local function moveInLane(old, new)
  local row = new or old
  if not row[${col.lane}] then return end
  local from = old and isActive(old) and old[${col.state}]
  local to = new and isActive(new) and new[${col.state}]
  if from == to then return end
  local key = laneKey(row)
  local before = call('ZRANGE', key, 0, 0)[1]
  if to then call('ZADD', key, 1 - to, row[${col.id}]) else call('ZREM', key, row[${col.id}]) end
  local after = call('ZRANGE', key, 0, 0)[1]
  if before ~= after then return before, after end
end

-- The letter is resolved: releases the letters that waited for it.
local function free(id)
  local waiting = call('SMEMBERS', P .. 'v:' .. id)
  if #waiting == 0 then return end
  call('DEL', P .. 'v:' .. id)
  for _, other in ipairs(waiting) do
    call('SREM', P .. 'p:' .. other, id)
    if call('EXISTS', P .. 'p:' .. other) == 0 then
      call('ZREM', P .. 'y', other)
      replace(other)
    end
  end
end
`
