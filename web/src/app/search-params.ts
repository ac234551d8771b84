/**
 * The search of an address as plain values. Keys that occur more than once have a list, keys like
 * `metadata.order` are the keys of an object.
 */
export type SearchParams = Record<string, string | string[] | Record<string, string> | undefined>

export function parseSearch(search: string): SearchParams {
  const params = new URLSearchParams(search)
  const found = new Map<string, SearchParams[string]>()
  for (const name of new Set(params.keys())) {
    const values = params.getAll(name)
    const dot = name.indexOf('.')
    if (dot > 0) {
      const key = name.slice(0, dot)
      const entry = { [name.slice(dot + 1)]: values[0]! }
      found.set(key, { ...(found.get(key) as Record<string, string> | undefined), ...entry })
    } else found.set(name, values.length === 1 ? values[0] : values)
  }
  return Object.fromEntries(found)
}

/** Lists become keys that are repeated, objects become keys like `metadata.order`. */
export function stringifySearch(search: Record<string, unknown>): string {
  const text = new URLSearchParams(Object.entries(search).flatMap(pairsOf)).toString()
  return text === '' ? '' : `?${text}`
}

function pairsOf([key, value]: [string, unknown]): [string, string][] {
  if (value === undefined || value === null || value === '') return []
  if (Array.isArray(value)) return value.flatMap((one: unknown) => pairsOf([key, one]))
  if (typeof value === 'object')
    return Object.entries(value).map(([name, one]) => [`${key}.${name}`, String(one)])
  return [[key, `${value as string | number | boolean}`]]
}

/** The entries of an object. Anything else has none. */
export function entriesOf(value: unknown): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).map(([name, one]) => [name, String(one)])
}

/** The values of a key as a list: of none, one or many. */
export function listOf(value: unknown): string[] {
  if (value === undefined || value === null) return []
  return (Array.isArray(value) ? value : [value]).map(String)
}

/** The value if it is one of the allowed ones. */
export function oneOf<T extends string>(allowed: readonly T[], value: unknown): T | undefined {
  return allowed.find((one) => one === value)
}

/** Those of the values that are allowed. */
export function someOf<T extends string>(allowed: readonly T[], value: unknown): T[] {
  return listOf(value).flatMap((one) => oneOf(allowed, one) ?? [])
}
