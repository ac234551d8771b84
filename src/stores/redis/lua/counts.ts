/**
 * The counters: changes are collected by kind while a script runs, and each changed field is
 * written once at its end.
 */
export const counts = String.raw`
-- By queue, tag and code.
local tags = {}
local hasMoved = false

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
  local code = one.state * 512 + one.category * 32 + one.priority * 8 + one.policy
  grow(one.kind.counts, code, n)
  if not one.tg then return end
  eachTag(one.tg, function(tag) grow(within(within(tags, one.kind.q), tag), code, n) end)
end

-- Adds an action on a letter to the totals.
local function total(action, one)
  local totals, at = one.kind.totals, action * 4 + one.priority
  local sums, retries = totals[at], one.retries
  if sums then
    sums[1], sums[2] = sums[1] + 1, sums[2] + retries
    if retries > sums[3] then sums[3] = retries end
    sums[4] = sums[4] + one.backoff_ms
  else
    totals[at] = { 1, retries, retries, one.backoff_ms }
  end
end

-- The number of letters in these states, including changes of this script.
local function standing(from, to)
  local sum = 0
  for state = from, to do sum = sum + tonumber(call('HGET', P .. 'states', state) or 0) end
  for _, kind in pairs(kinds) do
    for code, n in pairs(kind.counts) do
      local state = floor(code / 512)
      if state >= from and state <= to then sum = sum + n end
    end
  end
  return sum
end

local function writeCounts(name, counts)
  for field, n in pairs(counts) do
    if n ~= 0 and call('HINCRBY', P .. name, field, n) == 0 then call('HDEL', P .. name, field) end
  end
end

-- The counter of a group or tag: CODE:LENGTH:NAMEQUEUE.
local function fieldOf(code, name, queue) return code .. ':' .. #name .. ':' .. name .. queue end

-- The counters by hash and field. That of a cell is CODE:QUEUE.
local function countsByField()
  local cells, groups, states, tagged = {}, {}, {}, {}
  for _, kind in pairs(kinds) do
    for code, n in pairs(kind.counts) do
      grow(groups, fieldOf(code, kind.g, kind.q), n)
      grow(cells, code .. ':' .. kind.q, n)
      grow(states, floor(code / 512), n)
    end
  end
  for queue, names in pairs(tags) do
    for name, codes in pairs(names) do
      for code, n in pairs(codes) do grow(tagged, fieldOf(code, name, queue), n) end
    end
  end
  return { cells = cells, groups = groups, states = states, tags = tagged }
end

-- Adds the sums of an action to those of the store: COUNT RETRIES MAXRETRIES BACKOFFMS.
local function writeTotal(name, sums)
  local old = call('HGET', P .. 'totals', name)
  local n, retries, most, backoff = string.match(old or '0 0 0 0', '^(%S+) (%S+) (%S+) (%S+)$')
  call('HSET', P .. 'totals', name, format('%.0f %.0f %.0f %.17g', sums[1] + (tonumber(n) or 0),
    sums[2] + (tonumber(retries) or 0), math.max(sums[3], tonumber(most) or 0),
    sums[4] + (tonumber(backoff) or 0)))
end

-- Ends a script that moved letters. Returns how many scripts ever did.
local function flush()
  writeRows()
  writeIndexes()
  if not hasMoved then return tonumber(call('HGET', P .. 'meta', 'moves') or 0) end
  for name, counts in pairs(countsByField()) do writeCounts(name, counts) end
  for queue, own in pairs(totals) do
    for at, sums in pairs(own) do writeTotal(floor(at / 4) .. ':' .. at % 4 .. ':' .. queue, sums) end
  end
  if woke then call('PUBLISH', P .. 'wake', '') end
  return call('HINCRBY', P .. 'meta', 'moves', 1)
end
`
