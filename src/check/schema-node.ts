import { durationPattern, formatUnits, sizePattern } from './units.ts'

/** The part of JSON Schema that zod produces for our schemas. */
export interface SchemaNode {
  description?: string
  type?: string
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode | boolean
  items?: SchemaNode
  anyOf?: SchemaNode[]
  oneOf?: SchemaNode[]
  enum?: (string | number | boolean)[]
  const?: string | number | boolean
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  pattern?: string
  format?: string
  required?: string[]
  /** The value is a secret, or may contain one. */
  writeOnly?: boolean
}

/** The alternatives of a node, flattened. Without alternatives: the node itself. */
export function choicesOf(node: SchemaNode): SchemaNode[] {
  const alternatives = [...(node.anyOf ?? []), ...(node.oneOf ?? [])]
  return alternatives.length === 0 ? [node] : alternatives.flatMap(choicesOf)
}

/**
 * The nodes below a key, one for each alternative that has the key. A number is an index of an
 * array.
 */
export function childrenOf(node: SchemaNode, key: PropertyKey): SchemaNode[] {
  return choicesOf(node).flatMap(({ properties, additionalProperties, items }) => {
    if (typeof key === 'number') return items ? [items] : []
    const name = String(key)
    if (properties && Object.hasOwn(properties, name)) return [properties[name]!]
    return typeof additionalProperties === 'object' ? [additionalProperties] : []
  })
}

/** The node at a path. Undefined when the schema has no such key. */
export function nodeAt(path: readonly PropertyKey[], root: SchemaNode): SchemaNode | undefined {
  let nodes = [root]
  for (const key of path) nodes = nodes.flatMap((node) => childrenOf(node, key))
  return nodes.length > 1 ? { anyOf: nodes } : nodes[0]
}

/** The keys that the schema allows below a path. */
export function keysAt(path: readonly PropertyKey[], root: SchemaNode): string[] {
  const node = nodeAt(path, root)
  const keys = node ? choicesOf(node).flatMap(({ properties = {} }) => Object.keys(properties)) : []
  return [...new Set(keys)]
}

/** The strings that a node accepts by name. */
export function enumOf(node: SchemaNode): string[] {
  return choicesOf(node)
    .flatMap((choice) => choice.enum ?? [])
    .filter((value) => typeof value === 'string')
}

/**
 * What a node accepts, as in "an integer from 0 to 10". Empty if the schema does not restrict it.
 */
export function describeNode(node: SchemaNode): string {
  const choices = choicesOf(node)
  const units = choices.find(
    ({ pattern }) => pattern === durationPattern || pattern === sizePattern,
  )
  if (units) {
    const number = choices.find((one) => one !== units) ?? {}
    return units.pattern === durationPattern
      ? `a duration${describeRange(number, (ms) => formatUnits(ms, 'duration'))}, as in 30s, or in milliseconds`
      : `a size${describeRange(number, (bytes) => formatUnits(bytes, 'size'))}, as in 16MiB, or in bytes`
  }
  const kinds = choices.flatMap(({ properties }) => properties?.['kind']?.const ?? [])
  const parts = choices
    .filter(({ properties }) => properties?.['kind']?.const === undefined)
    .map(describeChoice)
  if (kinds.length > 0) parts.push(`an object with kind ${joinWords(kinds)}`)
  return [...new Set(parts)].filter((part) => part !== '').join(', or ')
}

function describeChoice(node: SchemaNode): string {
  if (node.const !== undefined) return String(node.const)
  if (node.enum) return joinWords(node.enum)
  switch (node.type) {
    case 'integer':
      return `an integer${describeRange(node, String)}`
    case 'number':
      return `a number${describeRange(node, String)}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return (node.minItems ?? 0) > 0 ? 'a non-empty array' : 'an array'
    case 'object': {
      const keys = Object.keys(node.properties ?? {})
      if (keys.length > 0) return `an object with ${keys.join(', ')}`
      return typeof node.additionalProperties === 'object' ? 'an object keyed by name' : 'an object'
    }
    case 'string':
      return describeString(node)
    default:
      return ''
  }
}

function describeString({
  format,
  pattern,
  minLength = 0,
  maxLength = Infinity,
}: SchemaNode): string {
  if (format === 'uri') return 'a URL'
  if (pattern !== undefined) return `a string that matches /${pattern}/`
  if (maxLength < Infinity) return `a string of ${minLength} to ${maxLength} characters`
  return minLength > 0 ? 'a non-empty string' : 'a string'
}

function describeRange(node: SchemaNode, format: (value: number) => string): string {
  const { minimum, exclusiveMinimum, maximum = Infinity } = node
  const limits = []
  if (minimum !== undefined) limits.push(`from ${format(minimum)}`)
  else if (exclusiveMinimum !== undefined) limits.push(`above ${format(exclusiveMinimum)}`)
  if (maximum < Number.MAX_SAFE_INTEGER) limits.push(`to ${format(maximum)}`)
  return limits.map((limit) => ` ${limit}`).join('')
}

function joinWords(words: readonly (string | number | boolean)[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
