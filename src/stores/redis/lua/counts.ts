/**
 * The counters: changes are collected while a script runs, and each changed field is written once
 * at its end.
 */
export const counts = String.raw`
-- By queue, group or tag, and code; by state; by name.
local groups, tags, states, totals = {}, {}, {}, {}

local function grow(counts, name, n) counts[name] = (counts[name] or 0) + n end

-- Calls use(tag) for each tag of a letter: LENGTH:TAG in turn.
local function eachTag(list, use)
  local at = 1
  while at <= #list do
    local colon = find(list, ':', at, true)
    local length = colon and tonumber(sub(list, at, colon - 1))
    if not length then return end
    use(sub(list, colon + 1, colon + length))
    at = colon + length + 1
  end
end

local function count(one, n)
  local code = one.s * 512 + one.c * 32 + one.p * 8 + one.y
  grow(states, one.s, n)
  grow(within(within(groups, one.q), one.g), code, n)
  if not one.tg then return end
  eachTag(one.tg, function(tag) grow(within(within(tags, one.q), tag), code, n) end)
end

-- Adds an action on a letter to the totals.
local function total(action, one)
  local name = nameOf(action .. ':', one.p, one.q)
  local sums = totals[name]
  if not sums then
    sums = { 0, 0, 0, 0 }
    totals[name] = sums
  end
  local retries = one.n
  sums[1] = sums[1] + 1
  sums[2] = sums[2] + retries
  sums[3] = math.max(sums[3], retries)
  sums[4] = sums[4] + one.bo
end

-- The number of letters in these states, including changes of this script.
local function standing(from, to)
  local sum = 0
  for state = from, to do
    sum = sum + tonumber(call('HGET', P .. 'states', state) or 0) + (states[state] or 0)
  end
  return sum
end

local function writeCounts(name, counts)
  for field, n in pairs(counts) do
    if n ~= 0 and call('HINCRBY', P .. name, field, n) == 0 then call('HDEL', P .. name, field) end
  end
end

-- The counters of groups or tags by field, and those of cells: CODE:LENGTH:NAMEQUEUE, CODE:QUEUE.
local function fieldsIn(counts)
  local named, cells = {}, {}
  for queue, names in pairs(counts) do
    for name, codes in pairs(names) do
      for code, n in pairs(codes) do
        named[digits[code] .. ':' .. digits[#name] .. ':' .. name .. queue] = n
        grow(cells, digits[code] .. ':' .. queue, n)
      end
    end
  end
  return named, cells
end

local function writeTotals()
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
end

-- Ends a script that moved letters. Returns how many scripts ever did.
local function flush()
  writeIndexes()
  if next(states) == nil and next(totals) == nil and not woke then
    return tonumber(call('HGET', P .. 'meta', 'moves') or 0)
  end
  local groupCounts, cells = fieldsIn(groups)
  writeCounts('cells', cells)
  writeCounts('groups', groupCounts)
  writeCounts('tags', (fieldsIn(tags)))
  writeCounts('states', states)
  writeTotals()
  if woke then call('PUBLISH', P .. 'wake', '') end
  return call('HINCRBY', P .. 'meta', 'moves', 1)
end
`
