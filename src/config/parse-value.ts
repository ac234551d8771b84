import { childrenOf, choicesOf, type SchemaNode } from '../check/schema-node.ts'
import { emptyTree, isTree } from './layer.ts'
import { durationPattern, parseDuration, parseSize, sizePattern } from '../check/units.ts'
import { readYaml } from './yaml.ts'

/**
 * Parses a string as the type that the schema expects. A string that does not fit stays a string.
 */
export function parseValue(string: string, node: SchemaNode | undefined): unknown {
  const types = new Set(node ? choicesOf(node).map(({ type }) => type) : [])
  const isNumber = types.has('integer') || types.has('number')
  if (isNumber && /^-?\d+(\.\d+)?$/.test(string)) return Number(string)
  if (types.has('boolean') && /^(true|false)$/.test(string)) return string === 'true'
  const isNested = types.has('object') || types.has('array')
  if (isNested && /^\s*[[{]/.test(string)) {
    const { value, problems } = readYaml(string, () => '')
    return problems.length === 0 ? value : string
  }
  return string
}

/**
 * Converts durations and sizes with a unit to numbers where the schema expects them. Other values
 * stay as they are.
 */
export function convertUnits(value: unknown, node: SchemaNode | undefined): unknown {
  if (!node) return value
  if (typeof value === 'string') {
    const patterns = choicesOf(node).map(({ pattern }) => pattern)
    const number = patterns.includes(durationPattern)
      ? parseDuration(value)
      : patterns.includes(sizePattern)
        ? parseSize(value)
        : undefined
    return number ?? value
  }
  const below = (key: PropertyKey): SchemaNode | undefined => {
    const nodes = childrenOf(node, key)
    return nodes.length > 1 ? { anyOf: nodes } : nodes[0]
  }
  if (Array.isArray(value))
    return value.map((item: unknown, index) => convertUnits(item, below(index)))
  if (!isTree(value)) return value
  const tree = emptyTree()
  for (const [key, inner] of Object.entries(value)) tree[key] = convertUnits(inner, below(key))
  return tree
}
