/** Messages that one script moves back or removes at the most, so that the server is never busy with it for long. */
export const maxStep = 100

/**
 * What every script begins with. All keys of a mailbox have one hash tag, so that a script may touch any of them: KEYS[1] is
 * the tag, and the names below stand behind it. A message is in `pending` or in `hidden`, never in both; one that is gone is nowhere.
 *
 *   pending   zset by place: what can be received. Places grow, so whatever comes back stands behind what waits
 *   hidden    zset by the moment of coming back: received, or delayed
 *   order     zset by the number of sending: all messages
 *   state     hash by id: receipt, deliveries, failures, first received, enqueued, 0, when the receipt lapses, size. Eight
 *             numbers of eight bytes, since reading and writing text takes several times as long. No number of the message's own
 *             is among them, so that what goes together and has one size has one state, which is made once
 *   body      hash by id: what was sent
 *   meta      hash: schema, the last number and receipt, counts of what was removed, and whether somebody waits
 *
 * Calls from a script cost more than what most of them do, so that each command goes once for all messages of a batch. A script that
 * fails halfway keeps what it wrote. Refusals of the server (no memory, no disk, read-only) come with the first write. A server that
 * is out of memory refuses that one only if it could need more; what is there must still be received and settled then, so
 * those scripts begin with a write that needs none.
 */
export const messages = String.raw`
local P = KEYS[1] .. ':'
local pending, hidden, order = P .. 'pending', P .. 'hidden', P .. 'order'
local state, body, meta = P .. 'state', P .. 'body', P .. 'meta'
local call, pack, read = redis.call, struct.pack, struct.unpack
local eight = '>dddddddd'

local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local nowMs = math.floor(micros / 1000)

local function text(n) return string.format('%d', n) end

local function all(command, key, list)
  if #list == 0 then return list end
  return call(command, key, unpack(list))
end

-- A state that was damaged by hand is made anew: the message itself is still there, and is better delivered than lost.
local function sound(raw, id)
  if #raw == 64 then return raw end
  return pack(eight, 0, 0, 0, 0, nowMs, 0, 0, call('HSTRLEN', body, id))
end

-- The write that needs no memory.
local function evenWhenFull() call('DEL', P .. 'none') end

-- Tells those who found nothing since it was last said. Nothing hangs on their hearing it.
local function wake()
  if call('HDEL', meta, 'waiting') == 1 then redis.pcall('PUBLISH', P .. 'wake', '') end
end
`

/** For scripts that remove what has expired or lost its body. */
export const removing = String.raw`
local gone, expired = {}, 0
local function removeGone()
  if #gone == 0 then return end
  for _, key in ipairs({ pending, hidden, order }) do all('ZREM', key, gone) end
  for _, key in ipairs({ state, body }) do all('HDEL', key, gone) end
  gone = {}
end

local function expire(id)
  gone[#gone + 1] = id
  expired = expired + 1
end

-- 0 is no retention: no message is older.
local function isOlder(raw, retention)
  return retention > 0 and read('>d', raw, 33) <= nowMs - retention
end

-- Expired, and held by nobody.
local function overdue(raw, retention)
  local receipt, _, _, _, _, _, lapses = read(eight, raw)
  return isOlder(raw, retention) and not (receipt > 0 and lapses > nowMs)
end

-- Messages expire in the order in which they were sent, so that only the oldest are looked at.
local function sweep(retention)
  if retention == 0 then return end
  local oldest = call('ZRANGE', order, '0', '${maxStep - 1}')
  for n, raw in ipairs(all('HMGET', state, oldest)) do
    if raw and overdue(sound(raw, oldest[n]), retention) then expire(oldest[n]) end
  end
  removeGone()
end
`
