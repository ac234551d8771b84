import { script } from '../../redis/script.ts'

/** Messages that one script moves back or removes at the most, so that the server is never busy with it for long. */
export const maxStep = 100

/** Past this many bytes of bodies an answer ends early. */
const maxAnswerBytes = 32 * 2 ** 20

/**
 * What every script begins with. All keys of a mailbox have one hash tag, so that a script may touch any of them: KEYS[1] is
 * the tag, and the names below stand behind it. A message is in `pending` or in `hidden`, never in both; one that is gone is nowhere.
 *
 *   pending   zset by place: what can be received. Places grow, so whatever comes back stands behind what waits
 *   hidden    zset by the moment of coming back: received, or delayed
 *   order     zset by the number of sending: all messages
 *   expiry    zset by the moment of expiry: those that have one
 *   state     hash by id: receipt, deliveries, failures, first received, and what never changes: enqueued, expires, number of
 *             sending, size. Eight numbers of eight bytes, since reading and writing text takes several times as long
 *   body      hash by id: what was sent
 *   meta      hash: schema, the last number and receipt, and counts of what was removed
 *
 * Calls from a script cost more than what most of them do, so that each command goes once for all messages of a batch. A script that
 * fails halfway keeps what it wrote. Refusals of the server (no memory, no disk, read-only) come with the first write.
 */
const messages = String.raw`
local P = KEYS[1] .. ':'
local pending, hidden, order, expiry = P .. 'pending', P .. 'hidden', P .. 'order', P .. 'expiry'
local state, body, meta = P .. 'state', P .. 'body', P .. 'meta'
local call, pack, read = redis.call, struct.pack, struct.unpack

local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local nowMs = math.floor(micros / 1000)

-- Numbers as text, made once each: that takes as long as keeping them.
local text = setmetatable({}, {
  __index = function(known, n)
    known[n] = string.format('%d', n)
    return known[n]
  end,
})

local function all(command, key, list)
  if #list == 0 then return list end
  return call(command, key, unpack(list))
end

-- A state that was damaged by hand is made anew: the message itself is still there, and is better delivered than lost.
local function sound(raw, id)
  if #raw == 64 then return raw end
  return pack('>dddddddd', 0, 0, 0, 0, nowMs, 0, 0, call('HSTRLEN', body, id))
end

-- The state with another beginning. The rest of it never changes.
local function changed(raw, receipt, deliveries, failures, first)
  return pack('>dddd', receipt, deliveries, failures, first) .. string.sub(raw, 33)
end

local gone, expired = {}, 0
local everywhere = { pending, hidden, order, expiry }
local function removeGone(keys)
  for _, key in ipairs(keys) do all('ZREM', key, gone) end
  for _, key in ipairs({ state, body }) do all('HDEL', key, gone) end
  gone = {}
end

local function expire(id)
  gone[#gone + 1] = id
  expired = expired + 1
end

-- What somebody has is left with them, and looked at again when their receipt lapses.
local function sweep()
  for _, id in ipairs(call('ZRANGEBYSCORE', expiry, '-inf', text[nowMs], 'LIMIT', '0', '${maxStep}')) do
    local lapses = tonumber(call('ZSCORE', hidden, id) or 0)
    local received = lapses > nowMs and read('>d', sound(call('HGET', state, id) or '', id)) > 0
    if received then call('ZADD', expiry, text[lapses], id) else expire(id) end
  end
  removeGone(everywhere)
end

-- Counts what went without being acknowledged, and tells whoever waits. Nothing hangs on their hearing it.
local function finish(news)
  if expired > 0 then call('HINCRBY', meta, 'expired', expired) end
  if news then redis.pcall('PUBLISH', P .. 'wake', '') end
end

-- Whether nothing else can be received than what was put there just now. Whoever waits has looked at the rest already.
local function alone(count)
  return count > 0 and call('ZCARD', pending) == count
end
`

/**
 * A server that is out of memory refuses a script's first write if it would need more. What is there must still be
 * received and settled then, so those scripts begin with a write that needs none.
 */
const evenWhenFull = String.raw`
call('DEL', P .. 'none')
`

/**
 * ARGV: most messages or nothing, retention in ms or 0, then for each parcel its id, delay in ms and bytes. Answers how many
 * expired, and for each 1 kept, 0 there already, -1 full. The first write is one that a full server refuses.
 */
const send = String.raw`
local most, retention, parcels = tonumber(ARGV[1]), tonumber(ARGV[2]), (#ARGV - 2) / 3
local seq = call('HINCRBY', meta, 'seq', parcels) - parcels
sweep()
local ids = {}
for at = 3, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local found = all('HMGET', state, ids)
local there = {}
for n, id in ipairs(ids) do there[id] = found[n] and true end
local room = most and most - call('HLEN', state)

local answers, states, bodies, orders, expiries, waiting, delayed = { 0 }, {}, {}, {}, {}, {}, {}
local function put(list, a, b)
  list[#list + 1] = a
  list[#list + 1] = b
end
local function keep(id, delay, bytes)
  if there[id] then return 0 end
  if room then
    if room <= 0 then return -1 end
    room = room - 1
  end
  there[id] = true
  seq = seq + 1
  -- Retention counts from when it can be received, so that no delay outlasts it.
  local expires = retention > 0 and nowMs + delay + retention or 0
  local place = text[seq]
  put(states, id, pack('>dddddddd', 0, 0, 0, 0, nowMs, expires, seq, #bytes))
  put(bodies, id, bytes)
  put(orders, place, id)
  if expires > 0 then put(expiries, text[expires], id) end
  if delay > 0 then put(delayed, text[nowMs + delay], id) else put(waiting, place, id) end
  return 1
end
for at = 3, #ARGV, 3 do
  answers[#answers + 1] = keep(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
end
all('HSET', state, states)
all('HSET', body, bodies)
all('ZADD', order, orders)
all('ZADD', expiry, expiries)
all('ZADD', pending, waiting)
all('ZADD', hidden, delayed)
answers[1] = expired
finish(#delayed > 0 or alone(#waiting / 2))
return answers
`

/**
 * ARGV: for each ask its most messages and visibility in ms. Answers how many expired, in how many ms to come again or -1, and for
 * each ask a list with id, receipt, deliveries, failures, enqueued, first received and bytes of each message. A receipt is the id with
 * a number, the same for all that one script gives. It is no lower than the time in microseconds, so that none comes twice for a
 * message, even if the server has forgotten the last ones.
 */
const receive = String.raw`
${evenWhenFull}
sweep()
local lapsed = call('ZRANGEBYSCORE', hidden, '-inf', text[nowMs], 'LIMIT', '0', '${maxStep}')
local news = false
if #lapsed > 0 then
  local place = call('HINCRBY', meta, 'seq', #lapsed) - #lapsed
  local back = {}
  for n, id in ipairs(lapsed) do
    back[2 * n - 1] = text[place + n]
    back[2 * n] = id
  end
  all('ZADD', pending, back)
  all('ZREM', hidden, lapsed)
  news = alone(#lapsed)
end

local wanted = 0
for at = 1, #ARGV, 2 do wanted = wanted + ARGV[at] end
local ids = call('ZRANGE', pending, 0, wanted - 1)
local raws = all('HMGET', state, ids)
-- There is more to do now, even for those who get nothing this time.
local more = #lapsed == ${maxStep}
local at, bytes = 1, 0
local function stray(id)
  gone[#gone + 1] = id
  call('HINCRBY', meta, 'strays', 1)
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
      local expires, _, size = read('>ddd', raw, 41)
      if expires == 0 or expires > nowMs then
        bytes = bytes + size
        return id, raw
      end
      expire(id)
      more = true
    end
  end
end

local taken, olds, lists, hides, answers = {}, {}, {}, {}, { 0, -1 }
for ask = 1, #ARGV, 2 do
  local list, hiddenUntil = {}, text[nowMs + ARGV[ask + 1]]
  answers[#answers + 1] = list
  for _ = 1, tonumber(ARGV[ask]) do
    local id, raw = nextOne()
    if not id then break end
    local n = #taken + 1
    taken[n], olds[n], lists[n] = id, raw, list
    hides[2 * n - 1], hides[2 * n] = hiddenUntil, id
  end
end

local states = {}
local sent = all('HMGET', body, taken)
local receipt = #taken > 0 and math.max(tonumber(call('HGET', meta, 'receipt') or 0) + 1, micros)
for n, id in ipairs(taken) do
  if not sent[n] then stray(id)
  else
    local _, deliveries, failures, first, enqueued = read('>ddddd', olds[n])
    -- To the microsecond, so that it says which delivery was the first.
    if first == 0 then first = receipt / 1000 end
    states[#states + 1] = id
    states[#states + 1] = changed(olds[n], receipt, deliveries + 1, failures, first)
    local list = lists[n]
    local from = #list
    list[from + 1], list[from + 2], list[from + 3], list[from + 4] = id, receipt, deliveries + 1, failures
    list[from + 5], list[from + 6], list[from + 7] = enqueued, first, sent[n]
  end
end
all('ZREM', pending, taken)
all('ZADD', hidden, hides)
all('HSET', state, states)
if receipt then call('HSET', meta, 'receipt', text[receipt]) end
removeGone(everywhere)
if more then answers[2] = 0
elseif #taken < wanted then
  local soonest = call('ZRANGE', hidden, 0, 0, 'WITHSCORES')[2]
  if soonest then answers[2] = math.max(0, soonest - nowMs) end
end
answers[1] = expired
finish(news and call('EXISTS', pending) == 1)
return answers
`

/**
 * ARGV: for each receipt what to do (a acknowledge, f give back as failed, n give back untried, u give back unseen to the front, e
 * extend), the id, the receipt's number and ms. Answers 1 for each that held, else 0.
 */
const settle = String.raw`
${evenWhenFull}
local ids = {}
for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
local raws, scores = all('HMGET', state, ids), all('ZMSCORE', hidden, ids)
local known, lapses = {}, {}
for n, id in ipairs(ids) do
  known[id] = raws[n] and sound(raws[n], id)
  lapses[id] = tonumber(scores[n] or 0)
end

local news = false
local function giveBack(what, id, ms)
  local receipt, deliveries, failures, first, _, _, seq = read('>ddddddd', known[id])
  -- What was not tried was no delivery.
  if what == 'f' then failures = failures + 1 else deliveries = deliveries - 1 end
  -- Nobody has seen it, so that another one will be the first.
  if what == 'u' and first == receipt / 1000 then first = 0 end
  known[id] = changed(known[id], 0, deliveries, failures, first)
  call('HSET', state, id, known[id])
  if ms > 0 then
    call('ZADD', hidden, text[nowMs + ms], id)
    news = true
    return
  end
  call('ZADD', pending, what == 'u' and text[seq] or call('HINCRBY', meta, 'seq', 1), id)
  call('ZREM', hidden, id)
  news = news or alone(1)
end
local function settle(what, id, receipt, ms)
  local holds = known[id] and read('>d', known[id]) == receipt and lapses[id] > nowMs
  if not holds or receipt == 0 then return 0 end
  if what == 'a' then
    known[id] = nil
    gone[#gone + 1] = id
  elseif what ~= 'e' then giveBack(what, id, ms)
  elseif nowMs + ms > lapses[id] then
    lapses[id] = nowMs + ms
    call('ZADD', hidden, text[nowMs + ms], id)
  end
  return 1
end
local answers = {}
for at = 1, #ARGV, 4 do
  answers[#answers + 1] = settle(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
end
-- What somebody has is not among what can be received.
removeGone({ hidden, order, expiry })
finish(news)
return answers
`

/** ARGV: the number to go on after, most messages. Answers the number of the last one or -1 at the end, and the messages as receive does. */
const browse = String.raw`
local found = call('ZRANGEBYSCORE', order, '(' .. ARGV[1], '+inf', 'LIMIT', '0', text[ARGV[2] + 1], 'WITHSCORES')
local page, bytes, last = {}, 0, -1
for at = 1, #found, 2 do
  if at > 2 * ARGV[2] or bytes > ${maxAnswerBytes} then return { last, page } end
  local id = found[at]
  last = tonumber(found[at + 1])
  local raw, sent = call('HGET', state, id), call('HGET', body, id)
  if raw and sent then
    local _, deliveries, failures, first, enqueued = read('>ddddd', sound(raw, id))
    bytes = bytes + #sent
    for _, one in ipairs({ id, 0, deliveries, failures, enqueued, first, sent }) do
      page[#page + 1] = one
    end
  end
end
return { -1, page }
`

/** Answers how many expired now and ever, how many messages there are, how many of them hidden, and how many had lost their body. */
const count = String.raw`
${evenWhenFull}
sweep()
finish()
local met = call('HMGET', meta, 'expired', 'strays')
return { expired, tonumber(met[1] or 0), call('HLEN', state), call('ZCARD', hidden), tonumber(met[2] or 0) }
`

/** The numbers stay, so that no receipt that is out ever holds again. */
const purge = String.raw`
${evenWhenFull}
local gone = call('HLEN', state)
call('UNLINK', pending, hidden, order, expiry, state, body)
return gone
`

export const scripts = {
  send: script(messages + send, true),
  receive: script(messages + receive, false),
  settle: script(messages + settle, false),
  browse: script(messages + browse, false),
  count: script(messages + count, false),
  purge: script(messages + purge, false),
} as const
