/**
 * One bounded step of a search: some zsets are read together from a position on, atomically, so
 * that a letter that moves from one to another is neither missed nor seen twice. `spec` has keys,
 * by (id or time), desc, after [time, id], before (a time), limit, most, need and the filter.
 */
export const scanning = String.raw`
local spec = cjson.decode(ARGV[1])
local byTime = spec.by == 'time'
local after = spec.after
local chunk = math.ceil(math.min(spec.most, spec.limit) / math.max(1, #spec.keys)) + 8

-- Conditions of the filter: the values of a cell, of a field or of the kind that pass.
local function setsOf(lists)
  local sets = {}
  for name, list in pairs(lists) do
    local set = {}
    for _, value in ipairs(list) do set[value] = true end
    sets[tonumber(name) or name] = set
  end
  return sets
end
local allowed, allowedKinds = setsOf(spec.filter.among), setsOf(spec.filter.kinds)

local function hasTag(one, wanted)
  local has = false
  if one.tg then eachTag(one.tg, function(tag) has = has or tag == wanted end) end
  return has
end

local function isBefore(time, limit) return time ~= unset and time < limit end

local limits = spec.filter
local need = spec.need
local function passes(one, key)
  for name, set in pairs(allowed) do
    if not set[one[name]] then return false end
  end
  for name, set in pairs(allowedKinds) do
    if not set[one.kind[name]] then return false end
  end
  if limits.tag and not hasTag(one, limits.tag) then return false end
  if limits.since and one.captured_at < limits.since then return false end
  if limits['until'] and one.captured_at >= limits['until'] then return false end
  if limits.settledBefore and not isBefore(one.settled_at, limits.settledBefore) then return false end
  if limits.expiresBefore and not isBefore(one.expires_at, limits.expiresBefore) then return false end
  if limits.dependent ~= nil and (one.unmet > 0) ~= limits.dependent then return false end
  -- A zset may contain letters that the search does not mean.
  if need == 'retry' then
    return one.retry_at ~= unset and (one.state ~= 1 or sub(key, #P + 1, #P + 1) == 'w')
  end
  if need == 'no retry' then return one.retry_at == unset end
  if need == 'settled' then return one.settled_at ~= unset end
  if need == 'not settled' then return one.settled_at == unset end
  return true
end

-- The rank of the first entry after a time and an id.
local function rankAfter(key, time, id)
  local low, high = 0, call('ZCARD', key)
  local own = call('ZSCORE', key, id)
  if own and tonumber(own) == time then return call('ZRANK', key, id) + 1 end
  while low < high do
    local mid = floor((low + high) / 2)
    local found = call('ZRANGE', key, mid, mid, 'WITHSCORES')
    local at = tonumber(found[2])
    if at < time or (at == time and found[1] <= id) then low = mid + 1 else high = mid end
  end
  return low
end

local function fill(head)
  if byTime then
    head.rank = head.rank or (after and rankAfter(head.key, after[1], after[2]) or 0)
    head.spots = call('ZRANGE', head.key, head.rank, head.rank + chunk - 1, 'WITHSCORES')
    head.rank = head.rank + chunk
  else
    local from = head.last or (after and after[2])
    if spec.desc then
      head.spots = call('ZREVRANGEBYLEX', head.key, from and '(' .. from or '+', '-', 'LIMIT', 0, chunk)
    else
      head.spots = call('ZRANGEBYLEX', head.key, from and '(' .. from or '-', '+', 'LIMIT', 0, chunk)
    end
    head.last = head.spots[#head.spots]
  end
  head.at = 1
  head.full = #head.spots == (byTime and 2 * chunk or chunk)
end

local width = byTime and 2 or 1

local function goesFirst(a, b)
  local x, y = a.spots[a.at], b.spots[b.at]
  if byTime then
    local s, t = tonumber(a.spots[a.at + 1]), tonumber(b.spots[b.at + 1])
    if s ~= t then return s < t end
    return x < y
  end
  if spec.desc then return x > y end
  return x < y
end

-- Reads letters in order, and calls use(letter, id, time, number of the key) for each that
-- passes; the letter is nil if it cannot be read. use returns the number of bytes that it read.
-- Returns 1 if there is more, the time and id of the last entry, and the number of entries without
-- a letter.
local function scan(use)
  local heads = {}
  for n, key in ipairs(spec.keys) do
    local head = { key = P .. key, n = n }
    fill(head)
    if head.spots[1] then heads[#heads + 1] = head end
  end
  heapOf(heads, goesFirst)
  local lost, seen, matched, bytes = 0, 0, 0, 0
  local lastAt, lastId = false, false
  while heads[1] do
    local best = heads[1]
    local id = best.spots[best.at]
    local time = byTime and best.spots[best.at + 1] or false
    if spec.before and tonumber(time) >= spec.before then break end
    if matched == spec.limit or seen == spec.most or bytes > spec.bytes then
      return { 1, lastAt, lastId, lost }
    end
    best.at = best.at + width
    if not best.spots[best.at] and best.full then fill(best) end
    settleHead(heads, not best.spots[best.at], goesFirst)
    seen = seen + 1
    lastAt, lastId = time, id
    local one, bad = read(id)
    if bad or one and passes(one, best.key) then
      matched = matched + 1
      bytes = bytes + use(one, id, time, best.n)
    elseif not one then
      lost = lost + 1
    end
  end
  return { 0, lastAt, lastId, lost }
end
`

/**
 * ARGV: the spec, with extent (summary or whole). Adds id, time, key, row, body and other fields of
 * each letter.
 */
export const find = String.raw`
local isWhole = spec.extent == 'whole'
local found = {}
local result = scan(function(_, id, time, n)
  local parts = partsOf(id, isWhole)
  found[#found + 1] = { id, time, n, unpack(parts, 1, 3) }
  return isWhole and sizeOf(parts[2], parts[3]) or 0
end)
result[5] = found
return result
`
