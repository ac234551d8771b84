import { col } from '../columns.ts'
import { wholeOf } from './claiming.ts'

/**
 * One bounded step of a search: some zsets are read together from a position on, atomically, so
 * that a letter that moves from one to another is neither missed nor seen twice. ARGV[1] has keys,
 * by (id or time), desc, after [time, id], before (a time), limit, most, need, extent (summary,
 * whole), bytes, and the filter. Returns 1 if there is more, the time and id of the last entry
 * read, the number of index entries without a letter, and for each letter id, time, key and fields.
 */
export const scan = String.raw`
local spec = cjson.decode(ARGV[1])
local filter = spec.filter
local byTime = spec.by == 'time'
local after = spec.after
local chunk = math.ceil(spec.most / math.max(1, #spec.keys)) + 8

local function setOf(list)
  if not list then return nil end
  local set = {}
  for _, value in ipairs(list) do set[value] = true end
  return set
end
local queues, stateSet, categories = setOf(filter.queues), setOf(filter.states), setOf(filter.categories)
local priorities, policies, reasons = setOf(filter.priorities), setOf(filter.policies), setOf(filter.reasons)
local groupSet, lanes, tenants = setOf(filter.groups), setOf(filter.lanes), setOf(filter.tenants)

local function before(at, limit) return not limit or (at and at < limit) end

local function passes(row)
  if queues and not queues[row[${col.queue}]] then return false end
  if stateSet and not stateSet[row[${col.state}]] then return false end
  if categories and not categories[row[${col.category}]] then return false end
  if priorities and not priorities[row[${col.priority}]] then return false end
  if policies and not policies[row[${col.policy}]] then return false end
  if reasons and not reasons[row[${col.reason}]] then return false end
  if groupSet and not groupSet[row[${col.fingerprint}]] then return false end
  if lanes and not lanes[row[${col.lane}]] then return false end
  if tenants and not tenants[row[${col.tenant}]] then return false end
  if filter.tag then
    local has = false
    for _, tag in ipairs(row[${col.tags}] or {}) do has = has or tag == filter.tag end
    if not has then return false end
  end
  if filter.since and row[${col.deadLetteredAt}] < filter.since then return false end
  if filter['until'] and row[${col.deadLetteredAt}] >= filter['until'] then return false end
  if not before(row[${col.settledAt}], filter.settledBefore) then return false end
  if not before(row[${col.expiresAt}], filter.expiresBefore) then return false end
  if filter.dependent ~= nil then
    local waits = row[${col.dependent}] == 1 and call('EXISTS', P .. 'p:' .. row[${col.id}]) == 1
    if waits ~= filter.dependent then return false end
  end
  -- A zset may contain letters that the search does not mean.
  if spec.need == 'retry' then return row[${col.retryAt}] and true or false end
  if spec.need == 'no retry' then return not row[${col.retryAt}] end
  if spec.need == 'settled' then return row[${col.settledAt}] and true or false end
  if spec.need == 'not settled' then return not row[${col.settledAt}] end
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

local heads = {}
for n, key in ipairs(spec.keys) do
  local head = { key = P .. key, n = n }
  fill(head)
  if head.spots[1] then heads[#heads + 1] = head end
end
heapOf(heads, goesFirst)

${wholeOf}
local found, lost, seen, bytes = {}, 0, 0, 0
local lastAt, lastId, more = false, false, 0
local matched = 0
while heads[1] do
  local best = heads[1]
  local id = best.spots[best.at]
  local time = byTime and best.spots[best.at + 1] or false
  if spec.before and tonumber(time) >= spec.before then break end
  if matched == spec.limit or seen == spec.most or bytes > spec.bytes then
    more = 1
    break
  end
  best.at = best.at + width
  if not best.spots[best.at] and best.full then fill(best) end
  settleHead(heads, not best.spots[best.at], goesFirst)
  seen = seen + 1
  lastAt, lastId = time, id
  local raw = fieldsOf(id, 'r')[1]
  local row, bad = rowIn(raw, id)
  local asked = row and spec.need == 'retry' and best.key == P .. 'd:' .. dueKey(row) and row[${col.state}] == 1
  if (row and not asked and passes(row)) or (not row and bad) then
    matched = matched + 1
    local fields
    if spec.extent == 'summary' then
      fields = fieldsOf(id, 'r', 'x', 'o')
    else
      fields = wholeOf(id)
      bytes = bytes + #(fields[4] or '') + #(fields[5] or '')
    end
    found[#found + 1] = { id, time, best.n, fields }
  elseif not raw then
    lost = lost + 1
  end
end
return { more, lastAt, lastId, lost, found }
`
