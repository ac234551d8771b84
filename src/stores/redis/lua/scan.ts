import { summaryFields, wholeFields } from '../fields.ts'
import { cell, evenWhenFull, luaList } from './letter.ts'

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

-- Conditions of the filter: the values of a field that pass.
local allowed = {}
for name, list in pairs(spec.filter.among) do
  local set = {}
  for _, value in ipairs(list) do set[value] = true end
  allowed[name] = set
end

local function hasTag(one, wanted)
  local has = false
  if one.tg then eachTag(one.tg, function(tag) has = has or tag == wanted end) end
  return has
end

local limits = spec.filter
local need = spec.need
local function passes(one, key)
  for name, set in pairs(allowed) do
    if not set[one[name]] then return false end
  end
  if limits.tag and not hasTag(one, limits.tag) then return false end
  if limits.since and one.t < limits.since then return false end
  if limits['until'] and one.t >= limits['until'] then return false end
  if limits.settledBefore and not (one.z and one.z < limits.settledBefore) then return false end
  if limits.expiresBefore and not (one.x and one.x < limits.expiresBefore) then return false end
  if limits.dependent ~= nil and (one.un > 0) ~= limits.dependent then return false end
  -- A zset may contain letters that the search does not mean.
  if need == 'retry' then return one.r and (one.s ~= 1 or sub(key, #P + 1, #P + 1) == 'w') end
  if need == 'no retry' then return not one.r end
  if need == 'settled' then return one.z end
  if need == 'not settled' then return not one.z end
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

-- Reads letters in order, and calls use(letter, history, id, time, number of the key) for each that
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
    local raw = fieldsOf(id, 'r', 'h')
    local one, bad = letterIn(raw[1], id)
    if bad or one and passes(one, best.key) then
      matched = matched + 1
      bytes = bytes + use(one, raw[2], id, time, best.n)
    elseif not one then
      lost = lost + 1
    end
  end
  return { 0, lastAt, lastId, lost }
end
`

/** ARGV: the spec, with extent (summary or whole). Adds id, time, key and fields of each letter. */
export const find = String.raw`
local names = spec.extent == 'whole' and ${luaList(wholeFields)} or ${luaList(summaryFields)}
local found = {}
local result = scan(function(_, _, id, time, n)
  local raw = fieldsOf(id, unpack(names))
  found[#found + 1] = { id, time, n, raw }
  return #(raw[${cell('b')}] or '') + #(raw[${cell('eb')}] or '')
end)
result[5] = found
return result
`

/**
 * ARGV: the spec, then for each state that has a move its code and the change, as in `apply`.
 * Returns moves, woke, what `scan` returns, and the number of letters that were changed.
 */
export const bulk = String.raw`
local moves = {}
local at = 2
while at <= #ARGV do
  local state = tonumber(ARGV[at])
  moves[state], at = changeAt(at + 1)
end
local written = 0
${evenWhenFull}
local result = scan(function(one, history)
  if one and one.s ~= 1 and moves[one.s] then
    write(one, history, moves[one.s])
    written = written + 1
  end
  return 0
end)
local wake = woke and 1 or 0
return { flush(), wake, result[1], result[3], result[4], written }
`
