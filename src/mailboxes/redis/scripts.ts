import { script } from '../../backends/redis/script.ts'
import { maxStep, messages, removing } from './messages.ts'

/** A reply ends early past this number of body bytes. */
const maxAnswerBytes = 32 * 2 ** 20

/**
 * ARGV: maximum number of messages or empty, retention in ms or 0, then for each message its id,
 * delay in ms and bytes. Returns the number of expired messages, and for each message 1 stored, 0
 * exists already, -1 full. The first write is one that a full server rejects.
 */
const send = String.raw`
local most, retention, parcels = tonumber(ARGV[1]), tonumber(ARGV[2]), (#ARGV - 2) / 3
local seq = call('HINCRBY', meta, 'seq', text(parcels)) - parcels
if most and call('HLEN', state) + parcels > most then sweep(retention) end
local ids = {}
for at = 3, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local found = call('HMGET', state, unpack(ids))
local there = {}
for n, id in ipairs(ids) do
  if there[id] == nil then
    there[id] = found[n] and not overdue(sound(found[n], id), retention)
    -- An expired message must not block a new one with its id.
    if found[n] and not there[id] then expire(id) end
  end
end
removeGone()
local room = most and most - call('HLEN', state)

local kept, states, bodies, orders, waiting, delayed = 0, {}, {}, {}, {}, {}
local raw, lastSize
local function describe(size)
  if size == lastSize then return end
  lastSize = size
  raw = pack(eight, 0, 0, 0, 0, nowMs, 0, 0, size)
end
local function keep(id, delay, bytes)
  if there[id] then return 0 end
  if room then
    if room <= 0 then return -1 end
    room = room - 1
  end
  there[id] = true
  describe(#bytes)
  local n = 2 * kept + 1
  kept = kept + 1
  local place = text(seq + kept)
  states[n], states[n + 1] = id, raw
  bodies[n], bodies[n + 1] = id, bytes
  orders[n], orders[n + 1] = place, id
  local list, score = waiting, place
  if delay > 0 then list, score = delayed, text(nowMs + delay) end
  list[#list + 1], list[#list + 2] = score, id
  return 1
end
local answers = { expired }
for at = 3, #ARGV, 3 do
  answers[#answers + 1] = keep(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
end
all('HSET', state, states)
all('HSET', body, bodies)
all('ZADD', order, orders)
all('ZADD', pending, waiting)
all('ZADD', hidden, delayed)
if kept > 0 then wake() end
return answers
`

/**
 * ARGV: retention in ms or 0, then for each request its maximum number of messages and visibility
 * in ms. Returns the number of expired messages, in how many ms to poll again or -1, the number of
 * messages of each request, and then id, state and bytes of each message. A receipt is the id with
 * a number, the same for all messages of one script. It is at least the time in microseconds, so
 * that no receipt of a message is used twice, even if the server has lost the last ones.
 */
const receive = String.raw`
local retention = tonumber(ARGV[1])
local ARGV = { unpack(ARGV, 2) }
local lapsed = call('ZRANGEBYSCORE', hidden, '-inf', text(nowMs), 'LIMIT', '0', '${maxStep}')
if #lapsed > 0 then
  evenWhenFull()
  local place = call('HINCRBY', meta, 'seq', #lapsed) - #lapsed
  local raws, back, states = all('HMGET', state, lapsed), {}, {}
  for n, id in ipairs(lapsed) do
    back[2 * n - 1], back[2 * n] = text(place + n), id
    if raws[n] then
      local _, deliveries, failures, first, enqueued, _, _, size = read(eight, sound(raws[n], id))
      states[#states + 1] = id
      states[#states + 1] = pack(eight, 0, deliveries, failures, first, enqueued, 0, 0, size)
    end
  end
  all('HSET', state, states)
  all('ZADD', pending, back)
  all('ZREM', hidden, lapsed)
end

local wanted = 0
for at = 1, #ARGV, 2 do wanted = wanted + ARGV[at] end
local ids = call('ZRANGE', pending, '0', text(wanted - 1))
local raws = all('HMGET', state, ids)
-- There is more to do now, even for requests that get nothing this time.
local more = #lapsed == ${maxStep}
local at, bytes, strays = 1, 0, 0
local function stray(id)
  gone[#gone + 1] = id
  strays = strays + 1
  more = true
end
local function nextOne()
  while ids[at] do
    local id, raw = ids[at], raws[at]
    if bytes > ${maxAnswerBytes} then
      more = true
      return nil
    end
    at = at + 1
    if not raw then stray(id)
    else
      raw = sound(raw, id)
      if not isOlder(raw, retention) then
        bytes = bytes + read('>d', raw, 57)
        return id, raw
      end
      expire(id)
      more = true
    end
  end
end

local taken, olds, asks = {}, {}, {}
for ask = 1, #ARGV, 2 do
  for _ = 1, tonumber(ARGV[ask]) do
    local id, raw = nextOne()
    if not id then break end
    local n = #taken + 1
    taken[n], olds[n], asks[n] = id, raw, ask
  end
end

local answers = { 0, -1 }
for _ = 1, #ARGV, 2 do answers[#answers + 1] = 0 end
if #taken > 0 then
  local sent = call('HMGET', body, unpack(taken))
  local receipt = math.max((call('HGET', meta, 'receipt') or 0) + 1, micros)
  local states, hides = {}, {}
  local raw, score, lastRaw, lastAsk
  local function change(old, ask)
    if old == lastRaw and ARGV[ask + 1] == lastAsk then return end
    lastRaw, lastAsk = old, ARGV[ask + 1]
    local _, deliveries, failures, first, enqueued, _, _, size = read(eight, old)
    -- In microseconds, to identify the first delivery.
    if first == 0 then first = receipt / 1000 end
    local lapses = math.floor(nowMs + lastAsk)
    raw = pack(eight, receipt, deliveries + 1, failures, first, enqueued, 0, lapses, size)
    score = text(lapses)
  end
  for n, id in ipairs(taken) do
    if not sent[n] then stray(id)
    else
      local ask = asks[n]
      change(olds[n], ask)
      local from = #states
      states[from + 1], states[from + 2] = id, raw
      hides[from + 1], hides[from + 2] = score, id
      local slot, last = (ask + 5) / 2, #answers
      answers[slot] = answers[slot] + 1
      answers[last + 1], answers[last + 2], answers[last + 3] = id, raw, sent[n]
    end
  end
  -- Everything is prepared: nothing can fail between leaving one zset and entering the other.
  call('ZREMRANGEBYRANK', pending, '0', text(at - 2))
  all('ZADD', hidden, hides)
  all('HSET', state, states)
  call('HSET', meta, 'receipt', text(receipt))
else evenWhenFull() end
if strays > 0 then call('HINCRBY', meta, 'strays', strays) end
removeGone()
-- If one message expired, there may be more.
if expired > 0 then sweep(retention) end
if more then answers[2] = 0
elseif #taken < wanted then
  local soonest = call('ZRANGE', hidden, 0, 0, 'WITHSCORES')[2]
  if soonest then answers[2] = math.max(0, soonest - nowMs) end
end
answers[1] = expired
if #lapsed > 0 and call('EXISTS', pending) == 1 then wake() end
-- A receiver that got nothing may wait for a notification.
if answers[#ARGV / 2 + 2] == 0 then call('HSETNX', meta, 'waiting', '1') end
return answers
`

/**
 * ARGV: for each receipt the operation (a acknowledge, f return as failed, n return untried, u
 * return unseen to the front, e extend), the id, the number of the receipt and ms. Returns 1 for
 * each valid receipt, else 0.
 */
const settle = String.raw`
local ids = {}
for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
local raws, known = call('HMGET', state, unpack(ids)), {}
for n, id in ipairs(ids) do known[id] = raws[n] and sound(raws[n], id) end

local news, gone = false, {}
local function change(id, receipt, deliveries, failures, first, lapses)
  evenWhenFull()
  known[id] = pack('>dddd', receipt, deliveries, failures, first) .. string.sub(known[id], 33, 48) ..
    pack('>d', lapses) .. string.sub(known[id], 57)
  call('HSET', state, id, known[id])
end
local function giveBack(what, id, ms)
  local receipt, deliveries, failures, first = read('>dddd', known[id])
  -- A message that was returned untried does not count as delivered.
  if what == 'f' then failures = failures + 1 else deliveries = deliveries - 1 end
  -- Nobody has seen the message, so the next delivery is the first.
  if what == 'u' and first == receipt / 1000 then first = 0 end
  change(id, 0, deliveries, failures, first, 0)
  news = true
  if ms > 0 then return call('ZADD', hidden, text(nowMs + ms), id) end
  local place = what == 'u' and call('ZSCORE', order, id) or call('HINCRBY', meta, 'seq', 1)
  call('ZADD', pending, place, id)
  call('ZREM', hidden, id)
end
local function extend(id, lapses)
  local receipt, deliveries, failures, first = read('>dddd', known[id])
  change(id, receipt, deliveries, failures, first, lapses)
  call('ZADD', hidden, text(lapses), id)
end
local function settle(what, id, number, ms)
  local raw = known[id]
  if not raw then return 0 end
  local receipt, lapses = read('>d', raw), read('>d', raw, 49)
  if receipt ~= number or receipt == 0 or lapses <= nowMs then return 0 end
  if what == 'a' then
    known[id] = nil
    gone[#gone + 1] = id
  elseif what ~= 'e' then giveBack(what, id, ms)
  elseif nowMs + ms > lapses then extend(id, math.floor(nowMs + ms)) end
  return 1
end
local answers = {}
for at = 1, #ARGV, 4 do
  answers[#answers + 1] = settle(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
end
-- A server that cannot write knows nothing about receipts, and must report that.
if #gone == 0 then evenWhenFull() end
-- Held messages are not in pending.
for _, key in ipairs({ hidden, order }) do all('ZREM', key, gone) end
for _, key in ipairs({ state, body }) do all('HDEL', key, gone) end
if news then wake() end
return answers
`

/**
 * ARGV: the number to continue after, maximum number of messages. Returns the number of the last
 * message or -1 at the end, and the messages as receive does.
 */
const browse = String.raw`
local found = call('ZRANGEBYSCORE', order, '(' .. ARGV[1], '+inf', 'LIMIT', '0', text(ARGV[2] + 1), 'WITHSCORES')
local answers, bytes, last = { -1 }, 0, -1
for at = 1, #found, 2 do
  if at > 2 * ARGV[2] or bytes > ${maxAnswerBytes} then
    answers[1] = last
    return answers
  end
  local id = found[at]
  last = tonumber(found[at + 1])
  local raw, sent = call('HGET', state, id), call('HGET', body, id)
  if raw and sent then
    bytes = bytes + #sent
    -- The receipt is not included.
    local shown = pack('>d', 0) .. string.sub(sound(raw, id), 9)
    for _, one in ipairs({ id, shown, sent }) do answers[#answers + 1] = one end
  end
end
return answers
`

/** Returns the number of messages, of hidden ones, and of those that lost their body. */
const count = String.raw`
evenWhenFull()
return { call('HLEN', state), call('ZCARD', hidden), tonumber(call('HGET', meta, 'strays') or 0) }
`

/** The numbers stay, so that no old receipt becomes valid again. */
const purge = String.raw`
evenWhenFull()
local gone = call('HLEN', state)
call('UNLINK', pending, hidden, order, state, body)
return gone
`

export const scripts = {
  send: script(messages + removing + send, true),
  receive: script(messages + removing + receive, false),
  settle: script(messages + settle, false),
  browse: script(messages + browse, false),
  count: script(messages + count, false),
  purge: script(messages + purge, false),
} as const
