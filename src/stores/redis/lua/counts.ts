import { col } from '../columns.ts'

/**
 * The counters: changes are collected while a script runs, and each changed field is written once
 * at its end.
 */
export const counts = String.raw`
local cells, groups, tags, states, totals = {}, {}, {}, {}, {}

local function grow(counts, name, n) counts[name] = (counts[name] or 0) + n end

local function count(row, n)
  local code = row[${col.state}] * 512 + row[${col.category}] * 32 + row[${col.priority}] * 8
    + row[${col.policy}]
  local queue = row[${col.queue}]
  local group = row[${col.fingerprint}]
  grow(states, row[${col.state}], n)
  local name = digits[code] .. ':'
  grow(cells, name .. queue, n)
  grow(groups, name .. digits[#group] .. ':' .. group .. queue, n)
  if not row[${col.tags}] then return end
  for _, tag in ipairs(row[${col.tags}]) do
    grow(tags, name .. digits[#tag] .. ':' .. tag .. queue, n)
  end
end

local function total(action, row)
  local name = digits[action] .. ':' .. digits[row[${col.priority}]] .. ':' .. row[${col.queue}]
  local sums = totals[name]
  if not sums then
    sums = { 0, 0, 0, 0 }
    totals[name] = sums
  end
  sums[1] = sums[1] + 1
  sums[2] = sums[2] + row[${col.retries}]
  sums[3] = math.max(sums[3], row[${col.retries}])
  sums[4] = sums[4] + tonumber(row[${col.backoffMs}])
end

-- The number of letters in these states, including changes of this script.
local function standing(from, to)
  local sum = 0
  for state = from, to do
    sum = sum + tonumber(call('HGET', P .. 'states', state) or 0) + (states[state] or 0)
  end
  return sum
end

local function write(name, counts)
  for field, n in pairs(counts) do
    if n ~= 0 and call('HINCRBY', P .. name, field, n) == 0 then call('HDEL', P .. name, field) end
  end
end

-- Ends a script that moved letters. Returns how many scripts ever did.
local function flush()
  if next(states) == nil and next(totals) == nil and not woke then
    return tonumber(call('HGET', P .. 'meta', 'moves') or 0)
  end
  write('cells', cells)
  write('groups', groups)
  write('tags', tags)
  write('states', states)
  for name, sums in pairs(totals) do
    local old = call('HGET', P .. 'totals', name)
    if old then
      local n, retries, most, backoff = string.match(old, '^(%S+) (%S+) (%S+) (%S+)$')
      sums[1] = sums[1] + (tonumber(n) or 0)
      sums[2] = sums[2] + (tonumber(retries) or 0)
      sums[3] = math.max(sums[3], tonumber(most) or 0)
      sums[4] = sums[4] + (tonumber(backoff) or 0)
    end
    call('HSET', P .. 'totals', name,
      format('%.0f %.0f %.0f %.17g', sums[1], sums[2], sums[3], sums[4]))
  end
  if woke then call('PUBLISH', P .. 'wake', '') end
  return call('HINCRBY', P .. 'meta', 'moves', 1)
end
`
