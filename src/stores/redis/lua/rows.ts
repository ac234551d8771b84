import { states } from '../../rows/codes.ts'
import { col, numberColumns, rowWidth, textColumns } from '../columns.ts'

/**
 * The beginning of every script. All keys of a store have one hash tag, so that a script may use
 * any of them: KEYS[1] is the tag, and the names below follow it.
 *
 * l:ID hash: r row, x rest, o origin, b captured bytes, e edited bytes, s source id as in f
 *   h:ID        list: history entries after the first
 *   i:STATE:Q   zset by id: letters of a queue and state
 *   s:STATE:Q   zset by settledAt; a resolved letter without it comes last
 *   d:PRIO:Q    zset by due time: letters that a claim may take, now or later
 *   w:Q         zset by retryAt: letters with a retryAt that claims ignore
 *   g: t: n: o: r:   zsets by id: letters of a group, tag, lane, tenant, reason
 *   f:SOURCE    zset by id: letters of a source id
 *   x           zset by expiresAt
 *   y           zset by id: letters that wait for others
 *   p:ID v:ID   sets: the ids that a letter waits for; the ids that wait for a letter
 *   a:LEN:Q:LANE     zset: active letters of a lane, those in flight first, then by id
 *   k:Q         zset of HASH:ID: open letters that hold a dedupeKey
 *   q           set of PRIO:Q: where claimable letters are, or lately were
 *   cells groups tags totals states   hashes: the counters
 *   meta        hash: schema, and how many scripts have moved letters
 *   K R:KIND Z:KIND  records: the kinds, the values, the order
 *
 * A script that fails halfway keeps what it wrote. So everything that can fail comes before the
 * first write: the server rejects the first write (no memory, no disk, read-only), and rows are
 * checked when they are read.
 */
export const rows = String.raw`
local P = KEYS[1] .. ':'
local call, format, sub, floor = redis.call, string.format, string.sub, math.floor
local woke = false
local stateNames = { ${states.map((state) => `'${state}'`).join(', ')} }

local nowMs
local function setNow(text)
  if text ~= '' then
    nowMs = tonumber(text)
  else
    local time = call('TIME')
    nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
  end
end

-- A timestamp in milliseconds. An invalid one counts as long past, so that the letter is found.
local moments = {}
local function msOf(at)
  local known = moments[at]
  if known then return known end
  local y, m, d, h, mi, s, f =
    string.match(at, '^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)%.(%d%d%d)Z$')
  if not y then return 0 end
  m = tonumber(m)
  y = m > 2 and tonumber(y) or tonumber(y) - 1
  local ofYear = floor((153 * ((m + 9) % 12) + 2) / 5) + d - 1
  local days = 365 * y + floor(y / 4) - floor(y / 100) + floor(y / 400) + ofYear - 719468
  local ms = ((days * 24 + h) * 60 + mi) * 60000 + s * 1000 + f
  moments[at] = ms
  return ms
end

local lastMs = 253402300799999
local function isoOf(ms)
  ms = math.min(math.max(floor(ms), 0), lastMs)
  local days = floor(ms / 86400000)
  local rest = ms - days * 86400000
  local z = days + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local m = mp < 10 and mp + 3 or mp - 9
  local y = yoe + era * 400 + (m <= 2 and 1 or 0)
  return format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', y, m, doy - floor((153 * mp + 2) / 5) + 1,
    floor(rest / 3600000), floor(rest / 60000) % 60, floor(rest / 1000) % 60, rest % 1000)
end

-- Small integers as strings, cached.
local digits = setmetatable({}, {
  __index = function(known, n)
    local text = format('%.0f', n)
    known[n] = text
    return text
  end,
})

local function score(ms) return format('%.0f', ms) end

local function sealed(text) return sub(redis.sha1hex(text), 1, 8) .. text end

-- Strings as JSON, cached: queues, workers and timestamps repeat.
local quotes = {}
local function quoted(text)
  if not text then return 'false' end
  local json = quotes[text]
  if not json then
    -- Most strings need no escapes, and the encoder is slow.
    local plain = type(text) == 'string' and not string.find(text, '[%c"\\]')
    json = plain and '"' .. text .. '"' or cjson.encode(text)
    quotes[text] = json
  end
  return json
end

-- Without the encoder, which is several times slower. The checksum of a corrupt row stays wrong.
local function rowText(row, bad)
  local cells = {}
  for n = 1, ${rowWidth} do
    local cell = row[n]
    cells[n] = type(cell) == 'number' and digits[cell] or quoted(cell)
  end
  local text = '[' .. table.concat(cells, ',') .. ']'
  return bad and '!damaged' .. text or sealed(text)
end

local function fits(row, id)
  if type(row) ~= 'table' or #row ~= ${rowWidth} or row[${col.id}] ~= id then return false end
  for _, n in ipairs({ ${numberColumns.join(', ')} }) do
    if type(row[n]) ~= 'number' then return false end
  end
  for _, n in ipairs({ ${textColumns.join(', ')} }) do
    if type(row[n]) ~= 'string' then return false end
  end
  for n = 1, ${rowWidth} do
    local kind = type(row[n])
    if n == ${col.tags} then
      if kind == 'table' then
        for _, tag in ipairs(row[n]) do if type(tag) ~= 'string' then return false end end
      elseif row[n] ~= false then return false end
    elseif kind ~= 'number' and kind ~= 'string' and row[n] ~= false then return false end
  end
  return tonumber(row[${col.backoffMs}]) ~= nil and row[${col.state}] >= 0 and row[${col.state}] < 6
    and row[${col.priority}] >= 0 and row[${col.priority}] < 4
end

-- The row, and whether its checksum is wrong. Nil if missing, or nil and true if unreadable.
local function rowIn(raw, id)
  if not raw then return nil, false end
  local text = sub(raw, 9)
  local whole = sub(raw, 1, 8) == sub(redis.sha1hex(text), 1, 8)
  local ok, row = pcall(cjson.decode, text)
  if not ok or type(row) ~= 'table' then return nil, true end
  if whole and row[${col.id}] == id then return row, false end
  if not fits(row, id) then return nil, true end
  return row, true
end

-- Fields of a letter. A key of another type is an unreadable letter, and must not fail the script.
local function fieldsOf(id, ...)
  local found = redis.pcall('HMGET', P .. 'l:' .. id, ...)
  if not found.err then return found end
  local fields = { '' }
  for n = 2, select('#', ...) do fields[n] = false end
  return fields
end

local function read(id) return rowIn(fieldsOf(id, 'r')[1], id) end

local function copyOf(row)
  local copy = {}
  for n = 1, ${rowWidth} do copy[n] = row[n] end
  return copy
end

-- The rest is JSON with one line per field, and no other newline.
local function restIn(raw)
  if not raw then return nil end
  local text = sub(raw, 9)
  if sub(raw, 1, 8) ~= sub(redis.sha1hex(text), 1, 8) then return nil end
  return text
end

local function occurrencesIn(raw)
  local text = restIn(raw)
  local n = text and string.match('\n' .. text, '\n[{,]"occurrences":(%d+)\n')
  return tonumber(n or 1)
end

-- Sets fields of a rest, and removes those that are false. The payload is first: see isEdited.
local function patchRest(text, set)
  local lines = {}
  for name, value in string.gmatch(text, '[{,]"(%w+)":([^\n]*)\n') do
    local new = set[name]
    if new == nil then lines[#lines + 1] = { name, value }
    elseif new then lines[#lines + 1] = { name, new } end
    set[name] = nil
  end
  for name, value in pairs(set) do
    if value then
      table.insert(lines, name == 'payload' and 1 or #lines + 1, { name, value })
    end
  end
  for n, line in ipairs(lines) do
    lines[n] = (n == 1 and '{"' or ',"') .. line[1] .. '":' .. line[2] .. '\n'
  end
  return table.concat(lines) .. '}'
end
`

/**
 * A server that is out of memory rejects the first write of a script if the write would need more.
 * Letters in flight must still be settled then, so their scripts begin with a write that needs
 * none.
 */
export const evenWhenFull = String.raw`call('DEL', P .. 'none')`
