import { maxHistory } from '../../../letter/history.ts'
import {
  byteNames,
  doubleNames,
  extraFields,
  headerLength,
  position,
  rowFormat,
} from '../fields.ts'

/**
 * The beginning of every script. All keys of a store have one hash tag, so that a script may use
 * any of them: KEYS[1] is the tag, and the names below follow it.
 *
 *   l:ID        hash: the letter; its fields are in fields.ts
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

-- Strings as numbers, cached. False: null, or not a number.
local numbers = setmetatable({}, {
  __index = function(known, text)
    local n = tonumber(text) or false
    known[text] = n
    return n
  end,
})
`

const list = (names: readonly string[], each = (name: string): string => name): string =>
  names.map(each).join(', ')
const names = [...byteNames, 'k', ...doubleNames]
const isByte = (name: string): boolean => (byteNames as readonly string[]).includes(name)

/**
 * Letters in scripts: tables by the names of cells and extra fields, with g the fingerprint, w the
 * worker and q the queue. A null is false or nil.
 */
export const letters = String.raw`
${base}
local none = 0 / 0

-- Fields of a letter. A key of another type is an unreadable letter, and must not fail the script.
local function fieldsOf(id, ...)
  local found = redis.pcall('HMGET', P .. 'l:' .. id, ...)
  if not found.err then return found end
  local none = {}
  for n = 1, select('#', ...) do none[n] = false end
  return none
end

local function addExtras(one)
  local raw = fieldsOf(one.id, ${list(extraFields, (name) => `'${name}'`)})
  ${list(extraFields, (name) => `one.${name}`)} = unpack(raw)
end

-- The letter. Nil if it is missing, or nil and true if it cannot be read.
local function letterIn(row, id)
  if not row then return nil, call('EXISTS', P .. 'l:' .. id) == 1 end
  if #row < ${headerLength} then return nil, true end
  local ${list(names)}, group, worker = struct.unpack('${rowFormat}', row)
  local one = {
    id = id, k = k,
    ${list(byteNames, (name) => `${name} = ${name} >= 0 and ${name}`)},
    ${list(doubleNames, (name) => `${name} = ${name} == ${name} and ${name}`)},
  }
  if s < 0 or s > 5 or p < 0 or p > 3 or c < 0 or y < 0
    or not (one.v and one.e and one.n and one.bo and one.t and one.un) then return nil, true end
  group = group + ${headerLength}
  worker = worker + group
  one.g, one.q = sub(row, ${headerLength + 1}, group), sub(row, worker + 1)
  one.w = one.l and sub(row, group + 1, worker)
  if k == 1 then addExtras(one) end
  return one, false
end

local function read(id)
  local row = redis.pcall('HGET', P .. 'l:' .. id, 'r')
  if row and type(row) ~= 'string' then row = false end
  return letterIn(row, id)
end

local function copyOf(one)
  local copy = { id = one.id, g = one.g, w = one.w, q = one.q, ${list(names, (name) => `${name} = one.${name}`)} }
  if one.k == 1 then ${list(extraFields, (name) => `copy.${name}`)} = ${list(extraFields, (name) => `one.${name}`)} end
  return copy
end

local function rowOf(one)
  local worker = one.l and one.w or ''
  return struct.pack('${rowFormat}', ${list(names, (name) => (name === 'k' ? 'one.k' : `one.${name} or ${isByte(name) ? '-1' : 'none'}`))},
    #one.g, #worker) .. one.g .. worker .. one.q
end

-- The shortest line of a history has 13 bytes.
local longHistory = 13 * ${maxHistory}

-- Appends a line to a history. Above the maximum, the second line is dropped and counted.
local function remember(one, history, line)
  if not history or history == '' then return line end
  history = history .. '\n' .. line
  if #history <= longHistory then return history end
  local _, breaks = string.gsub(history, '\n', '')
  local excess = breaks + 1 - ${maxHistory}
  if excess <= 0 then return history end
  local first = find(history, '\n', 1, true)
  local last = first
  for _ = 1, excess do last = find(history, '\n', last + 1, true) end
  one.om = (one.om or 0) + excess
  return sub(history, 1, first) .. sub(history, last + 1)
end
`

/** The position of a field in a reply, for scripts. */
export const cell = (name: string): number => position[name]! + 1

/** A Lua list of names. */
export const luaList = (list: readonly string[]): string =>
  `{ ${list.map((name) => `'${name}'`).join(', ')} }`

/**
 * A server that is out of memory rejects the first write of a script if the write would need more.
 * Letters in flight must still be settled then, so their scripts begin with a write that needs
 * none.
 */
export const evenWhenFull = String.raw`call('DEL', P .. 'none')`
