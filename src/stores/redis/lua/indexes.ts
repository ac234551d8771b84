/**
 * Index entries are collected while a script runs and written at its end: one command per zset. The
 * last value of an entry counts.
 */
export const indexes = String.raw`
local entries = {}

-- The table at this name, made if there is none.
local function within(parent, name)
  local own = parent[name]
  if not own then
    own = {}
    parent[name] = own
  end
  return own
end

-- The name of a zset of a queue, by its kind and a state or priority. Cached.
local zsetNames = {}
local function nameOf(kind, n, queue)
  local own = within(within(zsetNames, kind), n)
  local name = own[queue]
  if not name then
    name = kind .. digits[n] .. ':' .. queue
    own[queue] = name
  end
  return name
end

local function put(key, id, score)
  within(entries, key)[id] = score
end

-- Moves an entry from one zset to another. Nil: none.
local function reindex(from, to, id, score)
  if from and from ~= to then put(from, id, false) end
  if to and (from ~= to or score ~= 0) then put(to, id, score) end
end

-- A call can have only so many arguments.
local maxArguments = 4000

local function writeIndexes()
  for key, own in pairs(entries) do
    key = P .. key
    local added, gone, a, g = {}, {}, 0, 0
    for id, score in pairs(own) do
      if score then
        added[a + 1], added[a + 2] = digits[score], id
        a = a + 2
        if a == maxArguments then
          call('ZADD', key, unpack(added))
          added, a = {}, 0
        end
      else
        g = g + 1
        gone[g] = id
        if g == maxArguments then
          call('ZREM', key, unpack(gone))
          gone, g = {}, 0
        end
      end
    end
    if a > 0 then call('ZADD', key, unpack(added)) end
    if g > 0 then call('ZREM', key, unpack(gone)) end
  end
  entries = {}
end
`
