import { maxHistory } from '../../../letter/history.ts'
import {
  cell,
  headerLength,
  indexedFields,
  kindAt,
  lengthsAt,
  originAt,
  partsAt,
  position,
  rowFormat,
  summaryFields,
  wholeFields,
} from '../fields.ts'

/**
 * The beginning of every script. All keys of a store have one hash tag, so that a script may use
 * any of them: KEYS[1] is the tag, and the names below follow it.
 *
 *   l: b: m:    the letters, see fields.ts
 *   i:STATE:Q   zset by id: letters of a queue and state, for lists
 *   s:STATE:Q   zset by settledAt, for lists and evictions; a resolved letter without it comes last
 *   d:PRIO:Q    zset by due time: letters that a claim may take, now or later
 *   w:Q         zset by retryAt, for lists: letters with a retryAt that claims ignore
 *   g: t: n: o: f:   zsets by id, for filters: letters of a group, tag, lane, tenant, source id
 *   x           zset by expiresAt, for the filter expiresBefore
 *   y           zset by id, for the filter dependent: letters that wait for others
 *   p:ID v:ID   sets: the ids that a letter waits for; the ids that wait for a letter
 *   a:LEN:Q:LANE     zset: active letters of a lane, those in flight first, then by id
 *   k:Q         zset of HASH:ID: open letters that hold a dedupeKey
 *   q           set of PRIO:Q: where claimable letters are, or lately were
 *   cells groups tags totals states   hashes: the counters
 *   meta        hash: schema, and how many scripts have moved letters
 *   K R:KIND Z:KIND  records: the kinds, the values, the order
 *
 * A script that fails halfway keeps what it wrote. So everything that can fail comes before the
 * first write: the server rejects the first write (no memory, no disk, read-only), and letters are
 * checked when they are read.
 */
export const base = String.raw`
local P = KEYS[1] .. ':'
local call, format, floor = redis.call, string.format, math.floor
local sub, find = string.sub, string.find
local woke = false

local nowMs
local function setNow(text)
  if text ~= '' then
    nowMs = tonumber(text)
  else
    local time = call('TIME')
    nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
  end
end

-- When a lease of this length ends: at most the last millisecond that a timestamp can have.
local function endOf(leaseMs) return math.min(floor(nowMs + leaseMs), 253402300799999) end

-- Integers as strings, cached.
local digits = setmetatable({}, {
  __index = function(known, n)
    local text = format('%.0f', n)
    known[n] = text
    return text
  end,
})
`

const list = (names: readonly string[], each = (name: string): string => name): string =>
  names.map(each).join(', ')

/** Cells that every letter has. */
const required = ['version', 'epoch', 'retries', 'backoff_ms', 'captured_at', 'unmet']

/** The cells without the lengths of the strings of a kind. */
const packFormat = rowFormat.slice(0, -'I4I4I4'.length)

const quoted = (name: string): string => `'${name}'`

const cellName = new RegExp(String.raw`\.(${Object.keys(cell).join('|')})\b`, 'g')

/**
 * A letter in scripts is a table of its cells by index, which is far cheaper than one by name. This
 * replaces names: one.state becomes one[1].
 */
export function withCells(source: string): string {
  return source.replaceAll(cellName, (_, name: string) => `[${cell[name]}]`)
}

/**
 * Letters in scripts: the cells, and the fields of `indexedFields`. Times that are null are
 * `unset`, other numbers -1.
 */
export const letters = String.raw`
${base}
local unset = -math.huge

-- The table at this name, made if there is none.
local function within(parent, name)
  local own = parent[name]
  if not own then
    own = {}
    parent[name] = own
  end
  return own
end

-- What letters share, by that part of their rows: g the fingerprint, q the queue, y the policy;
-- with counts by code. And by queue: totals by action and priority, and the names of zsets.
local kinds, totals, names = {}, {}, {}

local function kindIn(text)
  local kind = kinds[text]
  if not kind then
    local g, q = struct.unpack('<I4I4', text)
    kind = {
      text = text, counts = {},
      g = sub(text, 13, 12 + g), q = sub(text, 13 + g, 12 + g + q), y = sub(text, 13 + g + q),
    }
    kind.totals = within(totals, kind.q)
    names[kind.q] = names[kind.q] or { i = {}, s = {}, d = {} }
    kind.names = names[kind.q]
    kinds[text] = kind
  end
  return kind
end

local function kindOf(g, q, y) return kindIn(struct.pack('<I4I4I4', #g, #q, #y) .. g .. q .. y) end

local function addFields(one)
  local raw = redis.pcall('HMGET', P .. 'm:' .. one.id, ${list(indexedFields, quoted)})
  if not raw.err then ${list(indexedFields, (name) => `one.${name}`)} = unpack(raw) end
end

-- The letter. Nil if it is missing, or nil and true if it cannot be read.
local function letterIn(row, id)
  if not row then return nil, call('EXISTS', P .. 'l:' .. id) == 1 end
  if #row < ${headerLength} then return nil, true end
  local one = { id, false, false, false, struct.unpack('${rowFormat}', row) }
  local worker = ${headerLength + 1} + one.group_length + one.queue_length + one.policy_length
  local history = worker + one.worker_length
  if history > #row + 1 or one.state < 0 or one.state > 5 or one.priority < 0 or one.priority > 3
    or one.category < 0 or one.policy < 0 or ${list(required, (name) => `one.${name} == unset`).replaceAll(', ', ' or ')} then
    return nil, true
  end
  one.kind, one.history = kindIn(sub(row, ${kindAt + 1}, worker - 1)), sub(row, history)
  if one.leased_until ~= unset then one.worker = sub(row, worker, history - 1) end
  if one.parts == 2 then addFields(one) end
  return one, false
end

-- Rows by id, as this script read or wrote them; bodies of new letters; the ids to write.
local rows, bodies, changed = {}, {}, {}

-- Reads strings at once. A key of another type is like a missing one, and does not fail the script.
local function stringsOf(kind, ids)
  local keys = {}
  for n, id in ipairs(ids) do keys[n] = P .. kind .. id end
  return #keys > 0 and call('MGET', unpack(keys)) or {}
end

local function readRows(ids)
  local found = stringsOf('l:', ids)
  for n, id in ipairs(ids) do rows[id] = found[n] end
end

local function read(id)
  if rows[id] == nil then readRows({ id }) end
  return letterIn(rows[id], id)
end

local function copyOf(one)
  local copy = { unpack(one, 1, ${Object.keys(cell).length}) }
  if one.parts == 2 then ${list(indexedFields, (name) => `copy.${name}`)} = ${list(indexedFields, (name) => `one.${name}`)} end
  return copy
end

local function setRow(id, row)
  rows[id] = row
  changed[#changed + 1] = id
end

local function keepRow(one)
  local worker = one.leased_until ~= unset and one.worker or ''
  one.worker_length = #worker
  setRow(one.id, struct.pack('${packFormat}', unpack(one, ${cell['state']}, ${cell['origin_length']})) .. one.kind.text .. worker .. one.history)
end

-- A call can have only so many arguments.
local maxArguments = 4000

local function callWith(command, key, list)
  for from = 1, #list, maxArguments do
    local to = math.min(#list, from + maxArguments - 1)
    if key then call(command, key, unpack(list, from, to)) else call(command, unpack(list, from, to)) end
  end
end

local function writeRows()
  local list, n = {}, 0
  for _, id in ipairs(changed) do
    if rows[id] then
      list[n + 1], list[n + 2] = P .. 'l:' .. id, rows[id]
      n = n + 2
      if bodies[id] then
        list[n + 1], list[n + 2] = P .. 'b:' .. id, bodies[id]
        n = n + 2
      end
    end
  end
  callWith('MSET', nil, list)
  bodies, changed = {}, {}
end

-- The shortest line of a history has 13 bytes.
local longHistory = 13 * ${maxHistory}

-- Appends a line to the history. Above the maximum, the second line is dropped and counted.
local function remember(one, line)
  if one.history == '' then
    one.history = line
    return
  end
  local history = one.history .. '\n' .. line
  one.history = history
  if #history <= longHistory then return end
  local _, breaks = string.gsub(history, '\n', '')
  local excess = breaks + 1 - ${maxHistory}
  if excess <= 0 then return end
  local first = find(history, '\n', 1, true)
  local last = first
  for _ = 1, excess do last = find(history, '\n', last + 1, true) end
  one.omitted = one.omitted + excess
  one.history = sub(history, 1, first) .. sub(history, last + 1)
end
`

/** Reads the parts of letters for replies. */
export const fetching = String.raw`
-- The other fields of a letter, if it has some.
local function fieldsOf(row, id, isWhole)
  if not row or #row < ${headerLength} or string.byte(row, ${partsAt + 1}) == 0 then return false end
  local found = isWhole and redis.pcall('HMGET', P .. 'm:' .. id, ${list(wholeFields, quoted)})
    or redis.pcall('HMGET', P .. 'm:' .. id, ${list(summaryFields, quoted)})
  return not found.err and found
end

-- Row, body and other fields of a letter that was read. A summary has no payload.
local function partsOf(id, isWhole)
  local row = rows[id]
  local last = -1
  if not isWhole then
    local isLong = row and #row >= ${headerLength}
    last = ${originAt - 1} + (isLong and struct.unpack('<I4', row, ${lengthsAt + 5}) or 0)
  end
  local body = redis.pcall('GETRANGE', P .. 'b:' .. id, 0, last)
  return { row, type(body) == 'string' and body, fieldsOf(row, id, isWhole) }
end

-- The number of payload bytes in the parts of a letter.
local function sizeOf(body, fields)
  return #(body or '') + #(fields and fields[${position['eb']! + 1}] or '')
end
`

/**
 * A server that is out of memory rejects the first write of a script if the write would need more.
 * Letters in flight must still be settled then, so their scripts begin with a write that needs
 * none.
 */
export const evenWhenFull = String.raw`call('DEL', P .. 'none')`
