import { actionCode } from '../../rows/codes.ts'
import { evenWhenFull } from './letter.ts'

/**
 * A guard is vVERSION, eEPOCH or eEPOCH=WORKER. A guard by epoch holds while the letter is leased,
 * also after the lease expired, as long as no other worker claimed it.
 */
const guards = String.raw`
local function holds(one, guard)
  if sub(guard, 1, 1) == 'v' then return guard == 'v' .. digits[one.version] end
  local lease = 'e' .. digits[one.epoch]
  return one.state == 1 and (guard == lease or guard == lease .. '=' .. (one.worker or ''))
end
`

/**
 * ARGV: the number of changes, the ids, then for each change the guard, and the change: see
 * `changeAt`. Returns moves, woke, and for each change w (written), c (conflict) or m (missing).
 */
export const apply = String.raw`
${guards}
${evenWhenFull}
local size = tonumber(ARGV[1])
readRows({ unpack(ARGV, 2, size + 1) })
local results = {}
local at = size + 2
for n = 1, size do
  local id = ARGV[n + 1]
  local change, following = changeAt(at + 1)
  local one, bad = read(id)
  if one and holds(one, ARGV[at]) then
    write(one, change)
    results[n] = 'w'
  else
    results[n] = (one or bad) and 'c' or 'm'
  end
  at = following
end
local wake = woke and 1 or 0
return { flush(), wake, table.concat(results) }
`

/**
 * ARGV: the versions, separated by spaces, the ids, then for each state that has a move its code
 * and the change: see `changeAt`. Returns the same as `apply`.
 */
export const applyAll = String.raw`
${evenWhenFull}
local versions = numbersIn(ARGV[1])
local size = #versions
local ids = { unpack(ARGV, 2, size + 1) }
local moves = {}
local at = size + 2
while at <= #ARGV do
  local state = tonumber(ARGV[at])
  moves[state], at = changeAt(at + 1)
end
readRows(ids)
local results = {}
for n, id in ipairs(ids) do
  local one, bad = read(id)
  local change = one and one.version == versions[n] and moves[one.state]
  if change then write(one, change) end
  results[n] = change and 'w' or (one or bad) and 'c' or 'm'
end
local wake = woke and 1 or 0
return { flush(), wake, table.concat(results) }
`

/**
 * ARGV: now, then for each lease its length, id and guard. Returns 1 for each lease that still
 * holds.
 */
export const renew = String.raw`
${guards}
setNow(ARGV[1])
${evenWhenFull}
local results = {}
for at = 2, #ARGV, 3 do
  local one = read(ARGV[at + 1])
  local isHeld = one and one.leased_until ~= unset and holds(one, ARGV[at + 2])
  local ends = endOf(tonumber(ARGV[at]))
  if isHeld and ends > one.leased_until then
    one.leased_until = ends
    keepRow(one)
    put(dueKey(one), one.id, ends)
  end
  results[#results + 1] = isHeld and 1 or 0
end
writeRows()
writeIndexes()
return results
`

/**
 * ARGV: pairs of id and expected version; 0 for an unreadable letter. Leased letters stay. Returns
 * moves, woke, the number of removed letters, and the ids of those that changed.
 */
export const remove = String.raw`
local gone, changes = 0, {}
${evenWhenFull}
for at = 1, #ARGV, 2 do
  local id, seen = ARGV[at], tonumber(ARGV[at + 1])
  local one, bad = read(id)
  if not one then
    if bad and seen == 0 then
      call('DEL', P .. 'l:' .. id, P .. 'b:' .. id, P .. 'm:' .. id, P .. 'p:' .. id)
      rows[id] = false
      gone = gone + 1
    end
  elseif one.state ~= 1 then
    if one.version == seen then
      erase(one, ${actionCode('remove')})
      gone = gone + 1
    else
      changes[#changes + 1] = id
    end
  end
end
local wake = woke and 1 or 0
return { flush(), wake, gone, changes }
`
