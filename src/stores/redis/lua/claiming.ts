import { ageingMs } from '../../../letter/order.ts'
import { actionCode } from '../../rows/codes.ts'
import { summaryFields, wholeFields } from '../fields.ts'
import { cell, evenWhenFull, luaList } from './letter.ts'

/**
 * ARGV: now, worker, leaseMs, limit, queues and except (each a JSON list or empty), the maximum
 * number of letters, and of bytes. Returns moves, woke, when the next letter is due or empty, the
 * number of index entries without a letter, and the letters: id and fields in turn.
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
  range.id = range.heads[range.at]
  range.score = range.id and tonumber(range.heads[range.at + 1]) + range.rank * ${ageingMs}
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
  return a.score < b.score or (a.score == b.score and a.id < b.id)
end

-- The first due letters, merged in claim order. Nothing is written before all are found.
local function candidates()
  local ready = {}
  for _, range in ipairs(ranges) do
    fill(range)
    if range.id then ready[#ready + 1] = range end
  end
  heapOf(ready, goesFirst)
  local found = {}
  while ready[1] and #found < limit do
    local best = ready[1]
    found[#found + 1] = { best.id, best.key }
    step(best)
    settleHead(ready, not best.id, goesFirst)
  end
  return found
end

-- A name as JSON.
local function quoted(name)
  return find(name, '[%c"\\]') and cjson.encode(name) or '"' .. name .. '"'
end

local names = ${luaList(wholeFields)}

-- Leases a letter. Returns its fields.
local function lease(id)
  local raw = fieldsOf(id, unpack(names))
  local old = letterIn(raw[${cell('r')}], id)
  if not old then return nil end
  local new = copyOf(old)
  new.s, new.e, new.n, new.v = 1, old.e + 1, old.n + 1, old.v + 1
  new.u, new.r, new.w, new.l = nowMs, false, worker, leasedUntil
  local key = P .. 'l:' .. id
  if old.w then
    local line = '[' .. digits[nowMs] .. ',' .. quoted(old.w) .. ',${actionCode('claim')},1,1,'
      .. digits[old.e] .. ',null,' .. digits[old.l] .. ']'
    raw[${cell('h')}] = remember(new, raw[${cell('h')}], line)
    call('HSET', key, 'h', raw[${cell('h')}])
  end
  raw[${cell('r')}] = rowOf(new)
  call('HSET', key, 'r', raw[${cell('r')}])
  move(old, new)
  total(${actionCode('claim')}, new)
  return raw
end

local letters = {}
local taken = limit > 0 and candidates() or {}
if #taken > 0 then ${evenWhenFull} end
local bytes = 0
for _, one in ipairs(taken) do
  if bytes > maxBytes then break end
  local letter = lease(one[1])
  if letter then
    bytes = bytes + #(letter[${cell('b')}] or '') + #(letter[${cell('eb')}] or '')
    letters[#letters + 1] = one[1]
    letters[#letters + 1] = letter
  else
    -- A missing or unreadable letter must not block the others.
    lost = lost + 1
    call('ZREM', one[2], one[1])
  end
end
woke = false
local moves = flush()
local nextMs = false
if #letters / 2 < asked then
  for _, range in ipairs(ranges) do
    local head = call('ZRANGE', range.key, 0, 0, 'WITHSCORES')[2]
    if head then nextMs = math.min(nextMs or math.huge, tonumber(head))
    elseif ARGV[5] == '' then call('SREM', P .. 'q', range.name) end
  end
end
return { moves, 0, nextMs and digits[nextMs], lost, letters }
`

/**
 * ARGV: summary or whole, the maximum number of bytes, ids. Returns letters for as many ids as fit,
 * each with the ids that it waits for, or nothing for a missing letter.
 */
export const fetch = String.raw`
local isWhole = ARGV[1] == 'whole'
local names = isWhole and ${luaList(wholeFields)} or ${luaList(summaryFields)}
local letters, bytes = {}, 0
for at = 3, #ARGV do
  if bytes > tonumber(ARGV[2]) then break end
  local id, found = ARGV[at], false
  local raw = fieldsOf(id, unpack(names))
  local one, bad = letterIn(raw[${cell('r')}], id)
  if one or bad then
    local waits = one and one.un == 0 and {} or call('SMEMBERS', P .. 'p:' .. id)
    found = { raw, waits }
    bytes = bytes + #(raw[${cell('b')}] or '') + #(raw[${cell('eb')}] or '')
  end
  letters[#letters + 1] = found
end
return letters
`
