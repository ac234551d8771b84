import { actionCode } from '../../rows/codes.ts'
import { col } from '../columns.ts'
import { evenWhenFull } from './rows.ts'

/**
 * Whether the letter is leased under this epoch; also after the lease expired, as long as no other
 * worker claimed it.
 */
const isLeased = String.raw`
local function isLeased(row, epoch, worker)
  return row[${col.state}] == 1 and row[${col.epoch}] == epoch
    and (not worker or row[${col.worker}] == worker)
end
`

/**
 * ARGV: for each change a description, and the bytes of an edit. The description has i id, v
 * version or e epoch and w worker, c columns and values, x fields of the rest and values, h the
 * history entry, t its time, a the actions to count. Returns moves, woke, and w c or m.
 */
export const apply = String.raw`
${isLeased}
local function applyOne(change, bytes)
  local id = change.i
  local key = P .. 'l:' .. id
  local raw = fieldsOf(id, 'r', 'x')
  local old, bad = rowIn(raw[1], id)
  if not old then return call('EXISTS', key) == 1 and 'c' or 'm' end
  local holds
  if change.v then holds = old[${col.version}] == change.v
  else holds = isLeased(old, change.e, change.w) end
  if not holds then return 'c' end
  local new = copyOf(old)
  for n = 1, #change.c, 2 do new[change.c[n]] = change.c[n + 1] end
  local rest
  if #change.x > 0 then
    rest = restIn(raw[2])
    if rest then
      local set = {}
      for n = 1, #change.x, 2 do set[change.x[n]] = change.x[n + 1] end
      rest = patchRest(rest, set)
    else
      -- There is nothing to merge with, and the row may still be recovered.
      for _, n in ipairs({ ${col.policy}, ${col.tags}, ${col.done} }) do new[n] = old[n] end
    end
  end
  new[${col.version}] = old[${col.version}] + 1
  new[${col.updatedAt}] = change.t
  remember(new, change.h)
  if bytes ~= '' and (rest or #change.x == 0) then call('HSET', key, 'e', bytes) end
  rewrite(old, new, bad, rest)
  for _, action in ipairs(change.a) do total(action, new) end
  return 'w'
end

${evenWhenFull}
local results = { 0, 0 }
for at = 1, #ARGV, 2 do
  results[#results + 1] = applyOne(cjson.decode(ARGV[at]), ARGV[at + 1])
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
  local id, epoch, worker = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
  local row, bad = read(id)
  local holds = row and row[${col.leasedUntil}] and isLeased(row, epoch, worker ~= '' and sub(worker, 2))
  if holds then
    local ends = isoOf(nowMs + tonumber(ARGV[at]))
    if ends > row[${col.leasedUntil}] then
      row[${col.leasedUntil}] = ends
      call('HSET', P .. 'l:' .. id, 'r', rowText(row, bad))
      place(row, row)
    end
  end
  results[#results + 1] = holds and 1 or 0
end
return results
`

/**
 * ARGV: pairs of id and expected version, or ? for an unreadable row. Leased letters stay. Returns
 * moves, woke, the number of removed letters, and the ids of those that changed.
 */
export const remove = String.raw`
local gone, changed = 0, {}
${evenWhenFull}
for at = 1, #ARGV, 2 do
  local id, seen = ARGV[at], ARGV[at + 1]
  local row, bad = read(id)
  if not row then
    if bad and seen == '?' then
      call('DEL', P .. 'l:' .. id, P .. 'h:' .. id, P .. 'p:' .. id)
      gone = gone + 1
    end
  elseif row[${col.state}] ~= 1 then
    if format('%d', row[${col.version}]) == seen then
      erase(row, ${actionCode('remove')})
      gone = gone + 1
    else
      changed[#changed + 1] = id
    end
  end
end
local wake = woke and 1 or 0
return { flush(), wake, gone, changed }
`
