import { ageingMs } from '../../../letter/order.ts'
import { actionCode } from '../../rows/codes.ts'
import { evenWhenFull } from './letter.ts'

/**
 * ARGV: now, worker, leaseMs, limit, queues and except (each a JSON list or empty), the maximum
 * number of letters, and of bytes. Returns moves, woke, when the next letter is due or empty, the
 * number of index entries without a letter, and for each letter id, row, body and other fields.
 */
export const claim = String.raw`
setNow(ARGV[1])
local worker, asked = ARGV[2], tonumber(ARGV[4])
local limit, maxBytes = math.min(asked, tonumber(ARGV[7])), tonumber(ARGV[8])
local lost = 0
local leasedUntil = endOf(tonumber(ARGV[3]))

local function rangesOf()
  local left = {}
  if ARGV[6] ~= '' then for _, name in ipairs(cjson.decode(ARGV[6])) do left[name] = true end end
  local ranges = {}
  local function add(rank, queue)
    if not left[queue] then
      ranges[#ranges + 1] = {
        key = P .. 'd:' .. rank .. ':' .. queue, rank = rank, name = rank .. ':' .. queue, seen = 0,
      }
    end
  end
  if ARGV[5] ~= '' then
    for _, queue in ipairs(cjson.decode(ARGV[5])) do
      if not left[queue] then
        for rank = 0, 3 do add(rank, queue) end
        left[queue] = true
      end
    end
  else
    for _, name in ipairs(call('SMEMBERS', P .. 'q')) do add(tonumber(sub(name, 1, 1)), sub(name, 3)) end
  end
  return ranges
end

local ranges = rangesOf()
local chunk = math.min(limit, math.ceil(limit / math.max(1, #ranges)) + 4)

local function stand(range)
  range.head = range.heads[range.at]
  range.score = range.head and tonumber(range.heads[range.at + 1]) + range.rank * ${ageingMs}
end

local function fill(range)
  range.heads = call('ZRANGEBYSCORE', range.key, '-inf', nowMs, 'WITHSCORES', 'LIMIT', range.seen, chunk)
  range.seen = range.seen + #range.heads / 2
  range.at = 1
  stand(range)
end

local function step(range)
  range.at = range.at + 2
  if range.heads[range.at] then stand(range) else fill(range) end
end

local function goesFirst(a, b)
  return a.score < b.score or (a.score == b.score and a.head < b.head)
end

-- The first due letters, merged in claim order. Nothing is written before all are found.
local function candidates()
  local ready = {}
  for _, range in ipairs(ranges) do
    fill(range)
    if range.head then ready[#ready + 1] = range end
  end
  heapOf(ready, goesFirst)
  local ids, keys, n = {}, {}, 0
  while ready[1] and n < limit do
    local best = ready[1]
    n = n + 1
    ids[n], keys[n] = best.head, best.key
    step(best)
    if ready[2] or not best.head then settleHead(ready, not best.head, goesFirst) end
  end
  return ids, keys
end

-- A name as JSON.
local function quoted(name)
  return find(name, '[%c"\\]') and cjson.encode(name) or '"' .. name .. '"'
end

-- Leases a letter. Returns its row, or nil if it cannot be read.
local function lease(id)
  local old = letterIn(rows[id], id)
  if not old then return nil end
  local new = copyOf(old)
  new.state, new.epoch, new.retries = 1, old.epoch + 1, old.retries + 1
  new.version, new.updated_at, new.retry_at = old.version + 1, nowMs, unset
  new.worker, new.leased_until = worker, leasedUntil
  if old.worker then
    remember(new, '[' .. digits[nowMs] .. ',' .. quoted(old.worker) .. ',${actionCode('claim')},1,1,'
      .. digits[old.epoch] .. ',null,' .. digits[old.leased_until] .. ']')
  end
  keepRow(new)
  move(old, new)
  total(${actionCode('claim')}, new)
  return rows[id]
end

-- Bodies that are read at once: few, since they may be large.
local maxBodies = 25

local letters, n = {}, 0
local ids, keys = {}, {}
if limit > 0 then ids, keys = candidates() end
if #ids > 0 then ${evenWhenFull} end
readRows(ids)
local bytes, found = 0, {}
for at, id in ipairs(ids) do
  if bytes > maxBytes then break end
  local next = (at - 1) % maxBodies + 1
  if next == 1 then found = stringsOf('b:', { unpack(ids, at, math.min(#ids, at + maxBodies - 1)) }) end
  local row = lease(id)
  if row then
    local body, fields = found[next], fieldsOf(row, id, true)
    bytes = bytes + sizeOf(body, fields)
    letters[n + 1], letters[n + 2], letters[n + 3], letters[n + 4] = id, row, body, fields
    n = n + 4
  else
    -- A missing or unreadable letter must not block the others.
    lost = lost + 1
    call('ZREM', keys[at], id)
  end
end
woke = false
local moves = flush()
local nextMs = false
if n / 4 < asked then
  for _, range in ipairs(ranges) do
    local head = call('ZRANGE', range.key, 0, 0, 'WITHSCORES')[2]
    if head then nextMs = math.min(nextMs or math.huge, tonumber(head))
    elseif ARGV[5] == '' then call('SREM', P .. 'q', range.name) end
  end
end
return { moves, 0, nextMs and digits[nextMs], lost, letters }
`

/**
 * ARGV: summary or whole, the maximum number of bytes, ids. Returns letters for as many ids as fit:
 * row, body, other fields and the ids that it waits for, or nothing for a missing letter.
 */
export const fetch = String.raw`
local isWhole = ARGV[1] == 'whole'
local letters, bytes = {}, 0
for at = 3, #ARGV do
  if bytes > tonumber(ARGV[2]) then break end
  local id, found = ARGV[at], false
  local one, bad = read(id)
  if one or bad then
    found = partsOf(id, isWhole)
    found[4] = one and one.unmet == 0 and {} or call('SMEMBERS', P .. 'p:' .. id)
    bytes = bytes + sizeOf(found[2], found[3])
  end
  letters[#letters + 1] = found
end
return letters
`
