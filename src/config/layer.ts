import { valueAt } from '../check/issues.ts'

export type Path = readonly (string | number)[]

/** An object without a prototype: no key can be mistaken for an inherited one. */
export type Tree = { [key: string]: unknown }

/**
 * The values of one source and the origin of each: `redrive.yaml:3`, `REDRIVE_MAX_RETRIES`, `--set
 * maxRetries`.
 */
export interface Layer {
  value: Tree
  origins: ReadonlyMap<string, string>
}

/** A problem, with its key and the origin of the value. */
export interface Problem {
  key: string
  from?: string
  text: string
}

export function emptyTree(): Tree {
  return Object.create(null) as Tree
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Keys that could reach a prototype. */
export function isForbidden(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

/** A path as the key of a map. Names may contain dots, so joining them would be ambiguous. */
export function keyOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path)
}

/** A path as people write it. */
export function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join('.')
}

/** A layer with one value. */
export function layerOf(path: readonly [string, ...string[]], value: unknown, from: string): Layer {
  const [first, ...rest] = path
  const tree = emptyTree()
  tree[first] = rest.reduceRight<unknown>((inner, key) => {
    const outer = emptyTree()
    outer[key] = inner
    return outer
  }, value)
  const origins = new Map(pathsIn(value, path).map((one) => [keyOf(one), from]))
  return { value: tree, origins }
}

/** A path and all paths below it. */
function pathsIn(value: unknown, path: Path): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value)
  const below = keys.flatMap((key) => pathsIn(valueAt(value, [key]), [...path, key]))
  return [path, ...below]
}

/** Merges two layers: objects are merged key by key, all other values are replaced. */
export function mergeLayers(lower: Layer, upper: Layer): Layer {
  return {
    value: mergeTrees(lower.value, upper.value),
    origins: new Map([
      ...[...lower.origins].filter(([key]) => !isReplaced(upper.value, JSON.parse(key) as Path)),
      ...upper.origins,
    ]),
  }
}

/** Whether the upper layer replaces the value at this path: only objects are merged. */
function isReplaced(upper: Tree, path: Path): boolean {
  return path.some((_, index) => {
    const value = valueAt(upper, path.slice(0, index + 1))
    return value !== undefined && !isTree(value)
  })
}

function mergeTrees(lower: Tree, upper: Tree): Tree {
  const tree = emptyTree()
  Object.assign(tree, lower)
  for (const [key, value] of Object.entries(upper)) {
    const below = tree[key]
    tree[key] = isTree(below) && isTree(value) ? mergeTrees(below, value) : value
  }
  return tree
}

/** The origin of the value at a path, or of its nearest parent. */
export function originOf(layer: Layer, path: readonly PropertyKey[]): string | undefined {
  for (let length = path.length; length > 0; length--) {
    const from = layer.origins.get(keyOf(path.slice(0, length)))
    if (from !== undefined) return from
  }
  return undefined
}

/** A problem of the value at a path. */
export function problemAt(path: readonly PropertyKey[], layer: Layer, text: string): Problem {
  const from = originOf(layer, path) ?? originBelow(layer, path)
  return { key: dotted(path), text, ...(from === undefined ? {} : { from }) }
}

/** The origin of a key that only contains others, such as `a` in `--set a.b=1`. */
function originBelow({ origins }: Layer, path: readonly PropertyKey[]): string | undefined {
  const start = `${keyOf(path).slice(0, -1)},`
  return [...origins].find(([key]) => key.startsWith(start))?.[1]
}
