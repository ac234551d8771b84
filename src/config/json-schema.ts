import { z } from 'zod'
import { configSchema } from './schema.ts'
import { durationPattern, inUnits, sizePattern } from './text.ts'

/** As much of JSON Schema as ours uses. */
export interface Node {
  description?: string
  type?: string
  properties?: Record<string, Node>
  additionalProperties?: Node | boolean
  items?: Node
  anyOf?: Node[]
  oneOf?: Node[]
  enum?: (string | number | boolean)[]
  const?: string | number | boolean
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  pattern?: string
  format?: string
  required?: string[]
  /** A secret, or something that may hold one. */
  writeOnly?: boolean
}

/** The schema of the configuration, as JSON Schema of the draft 2020-12. */
export const configNode: Node = {
  ...withTexts('', z.toJSONSchema(configSchema, { io: 'input' }) as Node),
}

/** The schema as it is published. */
export function configJsonSchema(): object {
  const { description: _none, ...schema } = configNode
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of Redrive',
    ...schema,
  }
}

/** Durations and sizes may be written as text. */
function withTexts(name: string, node: Node): Node {
  const text = name.endsWith('Ms') ? durationPattern : name.endsWith('Bytes') ? sizePattern : ''
  if (text !== '' && (node.type === 'number' || node.type === 'integer')) {
    const { description, ...number } = node
    const anyOf: Node[] = [number, { type: 'string', pattern: text }]
    return description === undefined ? { anyOf } : { description, anyOf }
  }
  const inner: Node = { ...node }
  if (node.properties)
    inner.properties = Object.fromEntries(
      Object.entries(node.properties).map(([key, property]) => [key, withTexts(key, property)]),
    )
  if (typeof node.additionalProperties === 'object')
    inner.additionalProperties = withTexts('', node.additionalProperties)
  if (node.items) inner.items = withTexts('', node.items)
  if (node.anyOf) inner.anyOf = node.anyOf.map((one) => withTexts('', one))
  if (node.oneOf) inner.oneOf = node.oneOf.map((one) => withTexts('', one))
  return inner
}

/** A node and what it may be instead, flat. */
export function choices(node: Node): Node[] {
  const below = [...(node.anyOf ?? []), ...(node.oneOf ?? [])]
  return below.length === 0 ? [node] : below.flatMap(choices)
}

/** What stands below a node under this key. A list has its items under every number. */
export function childrenOf(node: Node, key: PropertyKey): Node[] {
  return choices(node).flatMap(({ properties, additionalProperties, items }) => {
    if (typeof key === 'number') return items ? [items] : []
    const name = String(key)
    if (properties && Object.hasOwn(properties, name)) return [properties[name]!]
    return typeof additionalProperties === 'object' ? [additionalProperties] : []
  })
}

/** What the schema says about the value at a path. Undefined when it knows no such key. */
export function nodeAt(path: readonly PropertyKey[], root = configNode): Node | undefined {
  let nodes = [root]
  for (const key of path) nodes = nodes.flatMap((node) => childrenOf(node, key))
  return nodes.length > 1 ? { anyOf: nodes } : nodes[0]
}

/** Whether the value at a path may be shown to whoever reads an error or a log. */
export function isSecret(path: readonly PropertyKey[], root = configNode): boolean {
  return path.some((_, index) => nodeAt(path.slice(0, index + 1), root)?.writeOnly === true)
}

/** The keys that may stand below a path. */
export function keysAt(path: readonly PropertyKey[], root = configNode): string[] {
  const node = nodeAt(path, root)
  const keys = node ? choices(node).flatMap(({ properties = {} }) => Object.keys(properties)) : []
  return [...new Set(keys)]
}

/** What is allowed, in words. */
export function inWords(node: Node): string {
  const kinds = choices(node)
  const texts = kinds.find(({ pattern }) => pattern === durationPattern || pattern === sizePattern)
  if (texts) {
    const what = texts.pattern === durationPattern ? 'duration' : 'size'
    const number = kinds.find((one) => one !== texts) ?? {}
    return what === 'duration'
      ? `a duration${range(number, (ms) => inUnits(ms, 'duration'))}, as in 30s, or in milliseconds`
      : `a size${range(number, (bytes) => inUnits(bytes, 'size'))}, as in 16MiB, or in bytes`
  }
  const tagged = kinds.flatMap(({ properties }) => properties?.['kind']?.const ?? [])
  const parts = kinds
    .filter(({ properties }) => properties?.['kind']?.const === undefined)
    .map(kindInWords)
  if (tagged.length > 0) parts.push(`a map with a kind of ${tagged.join(', ')}`)
  return [...new Set(parts)].join(', or ')
}

function kindInWords(node: Node): string {
  if (node.const !== undefined) return String(node.const)
  if (node.enum) return `one of ${node.enum.join(', ')}`
  switch (node.type) {
    case 'integer':
      return `a whole number${range(node, String)}`
    case 'number':
      return `a number${range(node, String)}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return 'a list'
    case 'object': {
      const keys = Object.keys(node.properties ?? {})
      if (keys.length > 0) return `a map of ${keys.join(', ')}`
      return typeof node.additionalProperties === 'object' ? 'a map by name' : 'a map'
    }
    default:
      return node.format === 'uri' ? 'a URL' : 'a text'
  }
}

function range(node: Node, show: (value: number) => string): string {
  const { minimum, exclusiveMinimum, maximum = Infinity } = node
  const from =
    minimum === undefined
      ? exclusiveMinimum === undefined
        ? ''
        : ` above ${show(exclusiveMinimum)}`
      : ` from ${show(minimum)}`
  return maximum < Number.MAX_SAFE_INTEGER ? `${from} to ${show(maximum)}` : from
}
