import { maxHistory } from '../../../letter/history.ts'
import { numberFields, position, scriptFields } from '../fields.ts'

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
local call, format, sub, find, floor = redis.call, string.format, string.sub, string.find, math.floor
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

-- Integers as strings, cached.
local digits = setmetatable({}, {
  __index = function(known, n)
    local text = format('%.0f', n)
    known[n] = text
    return text
  end,
})
`

const names = scriptFields.map((name) => `'${name}'`).join(', ')
const fields = scriptFields.map((name, n) => {
  const value = `raw[${n + 1}]`
  return `${name} = ${numberFields.includes(name) ? `tonumber(${value})` : value}`
})

/**
 * Letters in scripts: tables by the names of their fields. An absent field is nil or false, and
 * numbers are numbers.
 */
export const letters = String.raw`
${base}
local isNumber = { ${numberFields.map((name) => `${name} = true`).join(', ')} }

-- Fields of a letter. A key of another type is an unreadable letter, and must not fail the script.
local function fieldsOf(id, ...)
  local found = redis.pcall('HMGET', P .. 'l:' .. id, ...)
  if not found.err then return found, false end
  local none = {}
  for n = 1, select('#', ...) do none[n] = false end
  return none, true
end

-- The letter. Nil if it is missing, or nil and true if it cannot be read.
local function letterIn(raw, id)
  local one = { id = id, ${fields.join(', ')} }
  one.e = one.e or 0
  one.n = one.n or 0
  one.bo = one.bo or 0
  local s, p = one.s, one.p
  if s and s >= 0 and s < 6 and p and p >= 0 and p < 4 and one.c and one.y and one.v
    and one.g and one.t and one.q then return one, false end
  return nil, call('EXISTS', P .. 'l:' .. id) == 1
end

local function read(id) return letterIn(fieldsOf(id, ${names}), id) end

-- Reads further fields as well. Returns them, and the letter.
local function readFields(id, names)
  local raw = fieldsOf(id, unpack(names))
  local one, bad = letterIn(raw, id)
  return raw, one, bad
end

-- The letter with new values: pairs in ARGV, and names of fields to clear.
local function withValues(old, change)
  local new = setmetatable({}, { __index = old })
  for n = change.from, change.to, 2 do
    local name, value = ARGV[n], ARGV[n + 1]
    new[name] = isNumber[name] and tonumber(value) or value
  end
  for n = change.to + 1, change.last do new[ARGV[n]] = false end
  return new
end

-- The shortest line of a history has 13 bytes.
local longHistory = 13 * ${maxHistory}

-- Appends a line to the history. Above the maximum, the second line is dropped and counted.
local function remember(one, line)
  local history = one.h
  if not history or history == '' then
    one.h = line
    return
  end
  history = history .. '\n' .. line
  if #history > longHistory then
    local _, breaks = string.gsub(history, '\n', '')
    local excess = breaks + 1 - ${maxHistory}
    if excess > 0 then
      local first = find(history, '\n', 1, true)
      local last = first
      for _ = 1, excess do last = find(history, '\n', last + 1, true) end
      history = sub(history, 1, first) .. sub(history, last + 1)
      one.om = (one.om or 0) + excess
    end
  end
  one.h = history
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
