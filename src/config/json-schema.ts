import { z } from 'zod'
import { nodeAt, type SchemaNode } from '../check/schema-node.ts'
import { durationPattern, sizePattern } from '../check/units.ts'
import { configSchema } from './schema.ts'

/** The configuration as JSON Schema (draft 2020-12). */
export const configNode: SchemaNode = acceptUnits(
  '',
  z.toJSONSchema(configSchema, { io: 'input' }) as SchemaNode,
)

/** The schema as it is published. */
export function configJsonSchema(): object {
  const { description: _none, ...schema } = configNode
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of Redrive',
    ...schema,
  }
}

/** Durations and sizes may also be strings with a unit. */
function acceptUnits(name: string, node: SchemaNode): SchemaNode {
  const pattern = name.endsWith('Ms') ? durationPattern : name.endsWith('Bytes') ? sizePattern : ''
  if (pattern !== '' && (node.type === 'number' || node.type === 'integer')) {
    const { description, ...number } = node
    const anyOf: SchemaNode[] = [number, { type: 'string', pattern }]
    return description === undefined ? { anyOf } : { description, anyOf }
  }
  const inner: SchemaNode = { ...node }
  if (node.properties)
    inner.properties = Object.fromEntries(
      Object.entries(node.properties).map(([key, property]) => [key, acceptUnits(key, property)]),
    )
  if (typeof node.additionalProperties === 'object')
    inner.additionalProperties = acceptUnits('', node.additionalProperties)
  if (node.items) inner.items = acceptUnits('', node.items)
  if (node.anyOf) inner.anyOf = node.anyOf.map((one) => acceptUnits('', one))
  if (node.oneOf) inner.oneOf = node.oneOf.map((one) => acceptUnits('', one))
  return inner
}

/** Whether the value at a path must not be shown in errors and logs. */
export function isSecret(path: readonly PropertyKey[], root = configNode): boolean {
  return path.some((_, index) => nodeAt(path.slice(0, index + 1), root)?.writeOnly === true)
}
