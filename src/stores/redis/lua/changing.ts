import { actionCode } from '../../rows/codes.ts'
import { evenWhenFull } from './letter.ts'

/**
 * Whether the letter is leased under this epoch; also after the lease expired, as long as no other
 * worker claimed it. Any worker, if none is given: a name has = before it.
 */
const isLeased = String.raw`
local function isLeased(one, epoch, worker)
  return one.s == 1 and one.e == tonumber(epoch) and (worker == '' or '=' .. (one.w or '') == worker)
end
`

/**
 * ARGV: for each change id, kind of guard (v or e), version or epoch, worker, and the change: see
 * `changeAt`. Returns moves, woke, and w c or m.
 */
export const apply = String.raw`
${isLeased}
local function holds(one, at)
  if ARGV[at + 1] == 'v' then return one.v == tonumber(ARGV[at + 2]) end
  return isLeased(one, ARGV[at + 2], ARGV[at + 3])
end

${evenWhenFull}
local results = { 0, 0 }
local at = 1
while at <= #ARGV do
  local change, following = changeAt(at + 4)
  local one, bad = read(ARGV[at])
  local result = 'c'
  if one and holds(one, at) then
    write(one, change)
    result = 'w'
  elseif not one and not bad then
    result = 'm'
  end
  results[#results + 1] = result
  at = following
end
results[2] = woke and 1 or 0
results[1] = flush()
return results
`

/**
 * ARGV: now, then for each lease its length, id, epoch, worker or empty. Returns 1 for each lease
 * that still holds.
 */
export const renew = String.raw`
${isLeased}
setNow(ARGV[1])
${evenWhenFull}
local results = {}
for at = 2, #ARGV, 4 do
  local one = read(ARGV[at + 1])
  local holds = one and one.l and isLeased(one, ARGV[at + 2], ARGV[at + 3])
  if holds then
    local ends = math.min(floor(nowMs + tonumber(ARGV[at])), 253402300799999)
    if ends > one.l then
      call('HSET', P .. 'l:' .. one.id, 'l', digits[ends])
      put('d:' .. dueKey(one), one.id, ends)
    end
  end
  results[#results + 1] = holds and 1 or 0
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
