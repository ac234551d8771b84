type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** A place in a JSON value: `$.items[3].name`, and what is there. */
export interface Match {
  path: string
  value: string
}

const maxNodes = 200_000
const maxMatches = 200
const maxValue = 200

/** Finds keys and values that contain a string, in any case. `isComplete` is false at a limit. */
export function searchJson(root: Json, text: string): { matches: Match[]; isComplete: boolean } {
  const wanted = text.toLowerCase()
  const matches: Match[] = []
  const stack: { path: string; key: string; value: Json }[] = [{ path: '$', key: '', value: root }]
  let nodes = 0
  while (stack.length > 0) {
    const { path, key, value } = stack.pop()!
    if (++nodes > maxNodes || matches.length >= maxMatches) return { matches, isComplete: false }
    const isBranch = typeof value === 'object' && value !== null
    const hasKey = key.toLowerCase().includes(wanted)
    if (hasKey || (!isBranch && String(value).toLowerCase().includes(wanted)))
      matches.push({ path, value: previewJson(value) })
    if (isBranch) for (const child of childrenOf(value, path).toReversed()) stack.push(child)
  }
  return { matches, isComplete: true }
}

function childrenOf(value: Json[] | { [key: string]: Json }, path: string) {
  if (Array.isArray(value))
    return value
      .slice(0, maxNodes)
      .map((item, index) => ({ path: `${path}[${index}]`, key: '', value: item }))
  return Object.entries(value)
    .slice(0, maxNodes)
    .map(([key, item]) => ({ path: pathOf(path, key), key, value: item }))
}

/** The path of a key: `$.name`, or `$["a b"]` if the key is not a plain word. */
export function pathOf(path: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`
}

/** A value on one line, shortened. */
export function previewJson(value: Json): string {
  if (Array.isArray(value))
    return value.length === 0 ? '[]' : `[${value.length} ${value.length === 1 ? 'item' : 'items'}]`
  if (typeof value === 'object' && value !== null) {
    const size = Object.keys(value).length
    return size === 0 ? '{}' : `{${size} ${size === 1 ? 'key' : 'keys'}}`
  }
  const text = JSON.stringify(value)
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text
}
