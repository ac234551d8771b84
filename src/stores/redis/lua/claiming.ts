import { actionCode } from '../../rows/codes.ts'
import { ageingMs } from '../../../letter/order.ts'
import { col } from '../columns.ts'
import { evenWhenFull } from './rows.ts'

/**
 * A letter in a reply: r x o b e, and the history entries after the first. Also returns its row.
 */
export const wholeOf = String.raw`
local function wholeOf(id)
  local kept = fieldsOf(id, 'r', 'x', 'o', 'b', 'e')
  local row, bad = rowIn(kept[1], id)
  kept[6] = {}
  if not row or row[${col.entries}] - row[${col.omitted}] > row[${col.first}] then
    kept[6] = call('LRANGE', P .. 'h:' .. id, 0, -1)
  end
  return kept, row, bad
end
`

/**
 * ARGV: now, worker, leaseMs, limit, queues and except (each a JSON list or empty), the maximum
 * number of letters, and of bytes. Returns moves, woke, when the next letter is due or empty, the
 * number of index entries without a letter, and the letters.
 */
export const claim = String.raw`
setNow(ARGV[1])
local worker, leaseMs, asked = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local limit, maxBytes = math.min(asked, tonumber(ARGV[7])), tonumber(ARGV[8])
local lost = 0
local at, leasedUntil = isoOf(nowMs), isoOf(nowMs + leaseMs)

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
  range.heads = call('ZRANGEBYSCORE', range.key, '-inf', score(nowMs), 'WITHSCORES', 'LIMIT', range.seen, chunk)
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

${wholeOf}
local function lease(id)
  local kept, old, bad = wholeOf(id)
  if not old then return nil end
  local new = copyOf(old)
  new[${col.state}] = 1
  new[${col.epoch}] = old[${col.epoch}] + 1
  new[${col.retries}] = old[${col.retries}] + 1
  new[${col.version}] = old[${col.version}] + 1
  new[${col.retryAt}] = false
  new[${col.worker}] = worker
  new[${col.leasedUntil}] = leasedUntil
  new[${col.updatedAt}] = at
  if old[${col.worker}] and old[${col.leasedUntil}] then
    local entry = cjson.encode({
      at = at, actor = old[${col.worker}], action = 'claim', from = 'retrying', to = 'retrying',
      epoch = old[${col.epoch}],
      note = 'the lease of ' .. old[${col.worker}] .. ' lapsed at ' .. old[${col.leasedUntil}],
    })
    remember(new, entry)
    kept[6] = call('LRANGE', P .. 'h:' .. id, 0, -1)
  end
  kept[1] = rewrite(old, new, bad)
  total(${actionCode('claim')}, new)
  return kept
end

local letters = {}
local taken = limit > 0 and candidates() or {}
if #taken > 0 then ${evenWhenFull} end
local bytes = 0
for _, one in ipairs(taken) do
  if bytes > maxBytes then break end
  local letter = lease(one[1])
  if letter then
    bytes = bytes + #(letter[4] or '') + #(letter[5] or '')
    letters[#letters + 1] = one[1]
    letters[#letters + 1] = letter
  else
    -- A missing or unreadable letter must not block the others.
    lost = lost + 1
    call('ZREM', one[2], one[1])
  end
end
local nextMs = false
if #letters / 2 < asked then
  for _, range in ipairs(ranges) do
    local head = call('ZRANGE', range.key, 0, 0, 'WITHSCORES')[2]
    if head then nextMs = math.min(nextMs or math.huge, tonumber(head))
    elseif ARGV[5] == '' then call('SREM', P .. 'q', range.name) end
  end
end
woke = false
return { flush(), 0, nextMs and score(nextMs), lost, letters }
`

/**
 * ARGV: summary or whole, the maximum number of bytes, ids. Returns letters for as many ids as fit,
 * or nothing for a missing letter, each with the ids that it waits for.
 */
export const fetch = String.raw`
${wholeOf}
local letters, bytes = {}, 0
for at = 3, #ARGV do
  if bytes > tonumber(ARGV[2]) then break end
  local id, kept = ARGV[at], false
  if call('EXISTS', P .. 'l:' .. id) == 1 then
    if ARGV[1] == 'whole' then kept = wholeOf(id)
    else
      local row = fieldsOf(id, 'r', 'x', 'o')
      kept = { row[1], row[2], row[3], false, false, {} }
    end
    kept[7] = call('SMEMBERS', P .. 'p:' .. id)
    bytes = bytes + #(kept[4] or '') + #(kept[5] or '')
  end
  letters[#letters + 1] = kept
end
return letters
`
