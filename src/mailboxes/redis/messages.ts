/**
 * The maximum number of messages that one script puts back or removes, so that no script blocks the
 * server for long.
 */
export const maxStep = 100

/**
 * The beginning of every script. All keys of a mailbox have one hash tag, so that a script may use
 * any of them: KEYS[1] is the tag, and the names below follow it. A message is in `pending` or in
 * `hidden`, never in both.
 *
 *   pending   zset by place: messages that can be received. Places grow, so a message that returns
 *             comes after those that wait
 *   hidden    zset by the time of becoming visible: received or delayed messages
 *   order     zset by sequence number: all messages
 *   state     hash by id: receipt, deliveries, failures, first received, enqueued, 0, when the
 *             receipt lapses, size. Eight numbers of eight bytes, since strings are several times
 *             slower. Nothing in it is unique to a message, so that messages of one batch and size
 *             share a state, which is built once
 *   body      hash by id: the packed message
 *   meta      hash: schema, the last number and receipt, counts of removed messages, and whether a
 *             receiver waits
 *
 * A call from a script costs more than most commands, so each command is called once for all
 * messages of a batch. A script that fails halfway keeps what it wrote. The server rejects the
 * first write (no memory, no disk, read-only). A server that is out of memory rejects it only if
 * the write could need more; messages must still be received and settled then, so those scripts
 * begin with a write that needs none.
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

-- A damaged state is recreated: the message still exists, and must be delivered.
local function sound(raw, id)
  if #raw == 64 then return raw end
  return pack(eight, 0, 0, 0, 0, nowMs, 0, 0, call('HSTRLEN', body, id))
end

-- A write that needs no memory.
local function evenWhenFull() call('DEL', P .. 'none') end

-- Notifies receivers that found nothing since the last notification. It may get lost.
local function wake()
  if call('HDEL', meta, 'waiting') == 1 then redis.pcall('PUBLISH', P .. 'wake', '') end
end
`

/** For scripts that remove messages that expired or lost their body. */
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

-- 0 means no retention: no message is older.
local function isOlder(raw, retention)
  return retention > 0 and read('>d', raw, 33) <= nowMs - retention
end

-- Expired, and not held by a receiver.
local function overdue(raw, retention)
  local receipt, _, _, _, _, _, lapses = read(eight, raw)
  return isOlder(raw, retention) and not (receipt > 0 and lapses > nowMs)
end

-- Messages expire in the order in which they were sent, so only the oldest are checked.
local function sweep(retention)
  if retention == 0 then return end
  local oldest = call('ZRANGE', order, '0', '${maxStep - 1}')
  for n, raw in ipairs(all('HMGET', state, oldest)) do
    if raw and overdue(sound(raw, oldest[n]), retention) then expire(oldest[n]) end
  end
  removeGone()
end
`
