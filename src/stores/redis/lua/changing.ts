import { actionCode } from '../../rows/codes.ts'
import { evenWhenFull } from './letter.ts'

/**
 * A guard is vVERSION, eEPOCH or eEPOCH=WORKER. A guard by epoch holds while the letter is leased,
 * also after the lease expired, as long as no other worker claimed it.
 */
const guards = String.raw`
local function holds(one, guard)
  if guard == 'v' .. digits[one.v] then return true end
  local lease = 'e' .. digits[one.e]
  return one.s == 1 and (guard == lease or guard == lease .. '=' .. (one.w or ''))
end
`

/**
 * ARGV: for each change id, guard, and the change: see `changeAt`. Returns moves, woke, and for
 * each change w (written), c (conflict) or m (missing).
 */
export const apply = String.raw`
${guards}
${evenWhenFull}
local results = { 0, 0 }
local at = 1
while at <= #ARGV do
  local change, following = changeAt(at + 2)
  local raw = fieldsOf(ARGV[at], 'r', 'h')
  local one, bad = letterIn(raw[1], ARGV[at])
  local result = (one or bad) and 'c' or 'm'
  if one and holds(one, ARGV[at + 1]) then
    write(one, raw[2], change)
    result = 'w'
  end
  results[#results + 1] = result
  at = following
end
results[2] = woke and 1 or 0
results[1] = flush()
return results
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
  local isHeld = one and one.l and holds(one, ARGV[at + 2])
  local ends = endOf(tonumber(ARGV[at]))
  if isHeld and ends > one.l then
    one.l = ends
    call('HSET', P .. 'l:' .. one.id, 'r', rowOf(one))
    put(dueKey(one), one.id, ends)
  end
  results[#results + 1] = isHeld and 1 or 0
end
writeIndexes()
return results
`

/**
 * ARGV: pairs of id and expected version; 0 for an unreadable letter. Leased letters stay. Returns
 * moves, woke, the number of removed letters, and the ids of those that changed.
 */
export const remove = String.raw`
local gone, changed = 0, {}
${evenWhenFull}
for at = 1, #ARGV, 2 do
  local id, seen = ARGV[at], tonumber(ARGV[at + 1])
  local one, bad = read(id)
  if not one then
    if bad and seen == 0 then
      call('DEL', P .. 'l:' .. id, P .. 'p:' .. id)
      gone = gone + 1
    end
  elseif one.s ~= 1 then
    if one.v == seen then
      erase(one, ${actionCode('remove')})
      gone = gone + 1
    else
      changed[#changed + 1] = id
    end
  end
end
local wake = woke and 1 or 0
return { flush(), wake, gone, changed }
`
