/**
 * Index entries are collected while a script runs and written at its end: one command per zset and
 * direction. The entries of a letter that moves again are written before.
 */
export const indexes = String.raw`
local added, removed, moved = {}, {}, {}

local function put(key, id, score)
  local own = added[key]
  if not own then
    own = {}
    added[key] = own
  end
  local n = #own
  own[n + 1], own[n + 2] = score == 0 and '0' or digits[score], id
end

local function take(key, id)
  local own = removed[key]
  if own then own[#own + 1] = id else removed[key] = { id } end
end

-- Moves an entry from one zset to another. Nil: none.
local function reindex(from, to, id, score)
  if from and from ~= to then take(from, id) end
  if to and (from ~= to or score ~= 0) then put(to, id, score) end
end

local function writeIndexes()
  for key, own in pairs(removed) do callWith('ZREM', P .. key, own) end
  for key, own in pairs(added) do callWith('ZADD', P .. key, own) end
  added, removed, moved = {}, {}, {}
end

-- Called before entries of a letter are collected.
local function beginMove(id)
  if moved[id] then writeIndexes() end
  moved[id] = true
end

-- The name of a zset of a queue, cached: its letter, and a state or priority.
local function nameOf(kind, letter, n)
  local own = kind.names[letter]
  local name = own[n]
  if not name then
    name = letter .. ':' .. n .. ':' .. kind.q
    own[n] = name
  end
  return name
end
`
