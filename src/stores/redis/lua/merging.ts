/**
 * Merges ordered lists. A head is the position in a list; heads are in a heap, so that the next of
 * a thousand lists costs little more than the next of one. `goesFirst` compares two heads.
 */
export const merging = String.raw`
local function sink(heap, n, goesFirst)
  while true do
    local first = n
    for child = 2 * n, 2 * n + 1 do
      if heap[child] and goesFirst(heap[child], heap[first]) then first = child end
    end
    if first == n then return end
    heap[n], heap[first] = heap[first], heap[n]
    n = first
  end
end

local function heapOf(heads, goesFirst)
  for n = floor(#heads / 2), 1, -1 do sink(heads, n, goesFirst) end
  return heads
end

-- The head of the heap advanced, or its list ended.
local function settleHead(heap, ended, goesFirst)
  if ended then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[1] then sink(heap, 1, goesFirst) end
end
`
