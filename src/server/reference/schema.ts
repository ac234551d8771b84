import { code, escapeHtml, sentence } from './html.ts'

/** A JSON Schema as the OpenAPI document has it. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  anyOf?: Schema[]
  allOf?: Schema[]
  items?: Schema
  properties?: { [name: string]: Schema }
  required?: string[]
  additionalProperties?: boolean | Schema
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  maxLength?: number
  maxItems?: number
}

/** A field of an object, or a parameter. */
export interface Field {
  name: string
  schema: Schema
  required: boolean
}

/** Names of named schemas are links. */
export const schemaAnchor = (name: string): string => `schema-${name}`

const maxDepth = 8
/** Of all numbers that a client can represent: no limit. */
const unlimited = Number.MAX_SAFE_INTEGER

/** The fields of a schema as nested lists, or its type if it is no object. */
export function renderSchema(schema: Schema): string {
  const inner = innerOf(schema)
  const type = `<p class="type">${typeOf(schema)}</p>`
  return inner ? `${schema.properties ? '' : type}${renderFields(fieldsOf(inner))}` : type
}

export function renderFields(fields: readonly Field[], depth = 0): string {
  const items = fields.map(({ name, schema, required }) => {
    const facts = [typeOf(schema), ...(required ? ['required'] : [])]
    const text = schema.description ? `<p>${sentence(schema.description)}</p>` : ''
    const inner = depth < maxDepth ? innerOf(schema) : undefined
    const nested = inner ? renderFields(fieldsOf(inner), depth + 1) : ''
    return `<li><code class="name">${escapeHtml(name)}</code> <span class="type">${facts.join(', ')}</span>${text}${nested}</li>`
  })
  return `<ul class="fields">${items.join('')}</ul>`
}

function fieldsOf({ properties = {}, required = [] }: Schema): Field[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    required: required.includes(name),
  }))
}

/** The object whose fields are listed below a field. Named schemas have a place of their own. */
function innerOf(schema: Schema): Schema | undefined {
  const { properties, items, additionalProperties, anyOf = [] } = schema
  if (properties && Object.keys(properties).length > 0) return schema
  if (items) return innerOf(items)
  if (typeof additionalProperties === 'object') return innerOf(additionalProperties)
  return anyOf.map(innerOf).find((inner) => inner !== undefined)
}

function typeOf(schema: Schema): string {
  const { $ref, enum: values, const: only, anyOf, allOf, items, additionalProperties } = schema
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf('/') + 1)
    return `<a href="#${schemaAnchor(name)}">${escapeHtml(name)}</a>`
  }
  if (only !== undefined) return code(JSON.stringify(only))
  if (values) return `one of ${values.map((one) => code(String(one))).join(', ')}`
  const options = anyOf ?? allOf
  if (options) return alternativesOf(options)
  if (items) return `list of ${typeOf(items)}${limitOf(schema.maxItems, 'items')}`
  if (typeof additionalProperties === 'object')
    return `object with values: ${typeOf(additionalProperties)}`
  return `${scalarOf(schema)}${defaultOf(schema)}`
}

/** "X or Y". A value that may also be a list of such values is described once. */
function alternativesOf(options: readonly Schema[]): string {
  const [one, list] = options
  const isOneOrMore =
    options.length === 2 && list?.items && JSON.stringify(list.items) === JSON.stringify(one)
  if (isOneOrMore) return `${typeOf(one!)}, or a list of them${limitOf(list.maxItems, 'items')}`
  return [...new Set(options.map(typeOf))].join(' or ')
}

function scalarOf(schema: Schema): string {
  const { type, format, maxLength, minimum, maximum, exclusiveMinimum } = schema
  if (type === undefined) return 'any JSON value'
  if (type === 'string' && format === 'date-time') return 'timestamp'
  const name = [type].flat().join(' or ')
  if (type === 'string') return `${name}${limitOf(maxLength, 'characters')}`
  if (type !== 'integer' && type !== 'number') return name
  if (exclusiveMinimum !== undefined)
    return `${name} above ${formatNumber(exclusiveMinimum)}${limitOf(maximum)}`
  const isBounded = minimum !== undefined && minimum > -unlimited
  if (isBounded && maximum !== undefined && maximum < unlimited)
    return `${name} from ${formatNumber(minimum)} to ${formatNumber(maximum)}`
  return `${name}${isBounded && minimum > 0 ? `, at least ${formatNumber(minimum)}` : limitOf(maximum)}`
}

/** An upper limit in words, without the one that every number has. */
function limitOf(limit: number | undefined, unit = ''): string {
  if (limit === undefined || limit >= unlimited) return ''
  return ` (at most ${formatNumber(limit)}${unit === '' ? '' : ` ${unit}`})`
}

function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

function defaultOf({ default: value }: Schema): string {
  return value === undefined ? '' : `, default ${code(JSON.stringify(value))}`
}

/** A value that satisfies a schema, with required fields only. */
export function exampleOf(
  schema: Schema,
  name: string,
  named: { [name: string]: Schema },
  depth = 0,
): unknown {
  if (schema.$ref !== undefined)
    return exampleOf(
      named[schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)]!,
      name,
      named,
      depth,
    )
  const { const: only, enum: values, anyOf, items, properties, type, format } = schema
  if (only !== undefined) return only
  if (values) return values[0]
  if (anyOf) return exampleOf(anyOf[0]!, name, named, depth)
  if (properties && depth < maxDepth)
    return Object.fromEntries(
      fieldsOf(schema)
        .filter(({ required }) => required)
        .map((one) => [one.name, exampleOf(one.schema, one.name, named, depth + 1)]),
    )
  if (items) return [exampleOf(items, name, named, depth + 1)]
  if (type === 'string')
    return format === 'date-time' ? '2026-01-01T00:00:00.000Z' : (words[name] ?? 'text')
  if (type === 'integer' || type === 'number') return Math.max(1, schema.minimum ?? 1)
  return type === 'boolean' ? true : {}
}

/** Values that say more than `text`. */
const words: { [name: string]: string } = {
  id: '0198c0de-7a11-7c3e-9c55-2f6c3d1e8a90',
  queue: 'charge-card',
  fingerprint: '5f0c1a2b3c4d5e6f',
  others: '6a1b2c3d4e5f6071',
  nodeId: 'parser',
  name: 'ci',
  reason: 'the gateway was down',
  text: 'seen',
  message: 'the gateway refused the card',
  words: 'gateway refused',
  assignee: 'mia',
}
