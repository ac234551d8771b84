import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { SchemaNode } from '../../src/check/schema-node.ts'
import { configJsonSchema } from '../../src/config/json-schema.ts'
import { readYaml } from '../../src/config/yaml.ts'
import { badFiles } from './bad-files.ts'

type Rules = SchemaNode & {
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  propertyNames?: Rules
}

/**
 * A validator with the keywords of the published schema. An unknown keyword is an error.
 */
const keywords = new Set(
  '$schema title description format writeOnly type properties required additionalProperties propertyNames items anyOf oneOf enum const minimum maximum exclusiveMinimum minLength maxLength minItems maxItems minProperties maxProperties pattern'.split(
    ' ',
  ),
)

function accepts(rules: Rules, value: unknown): boolean {
  const unknown = Object.keys(rules).filter((keyword) => !keywords.has(keyword))
  if (unknown.length > 0) throw new Error(`unknown keywords ${unknown.join(', ')}`)
  if (rules.anyOf && !rules.anyOf.some((one) => accepts(one, value))) return false
  if (rules.oneOf && rules.oneOf.filter((one) => accepts(one, value)).length !== 1) return false
  if (rules.const !== undefined && rules.const !== value) return false
  if (rules.enum && !(rules.enum as unknown[]).includes(value)) return false
  if (rules.type !== undefined && !isOfType(rules.type, value)) return false
  if (typeof value === 'number') return inRange(rules, value)
  if (typeof value === 'string')
    return (
      within(value.length, rules.minLength, rules.maxLength) &&
      new RegExp(rules.pattern ?? '', 'u').test(value)
    )
  if (Array.isArray(value))
    return (
      within(value.length, rules.minItems, rules.maxItems) &&
      value.every((item) => !rules.items || accepts(rules.items, item))
    )
  return typeof value !== 'object' || value === null || acceptsMap(rules, { ...value })
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

function inRange(
  { minimum = -Infinity, maximum = Infinity, exclusiveMinimum }: Rules,
  value: number,
) {
  return value >= minimum && value <= maximum && value > (exclusiveMinimum ?? -Infinity)
}

const within = (size: number, least = 0, most = Infinity): boolean => size >= least && size <= most

function acceptsMap(rules: Rules, map: Record<string, unknown>): boolean {
  const { properties = {}, required = [], additionalProperties = true, propertyNames } = rules
  const keys = Object.keys(map)
  if (!within(keys.length, rules.minProperties, rules.maxProperties)) return false
  if (!required.every((key) => keys.includes(key))) return false
  return keys.every((key) => {
    if (propertyNames && !accepts(propertyNames, key)) return false
    if (Object.hasOwn(properties, key)) return accepts(properties[key]!, map[key])
    if (typeof additionalProperties === 'object') return accepts(additionalProperties, map[key])
    return additionalProperties
  })
}

const schema = configJsonSchema() as Rules & { $schema: string }
const parse = (text: string): unknown => readYaml(text, String).value

/** Problems that a schema cannot express: addresses, headers, patterns, missing secrets. */
const beyondSchema =
  /without a path|range of addresses|begin with https|a URL and a name|must be a URL|is no URL|http or https|a password|private|is never allowed|is never called|is set by Redrive|is no header|is not a valid header|not a pattern|is not set|cannot be read|begin with the program|4000d|1B to 1GiB|"2h"/

describe('the published schema', () => {
  it('uses draft 2020-12 and allows no additional properties', () => {
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(schema.additionalProperties).toBe(false)
  })

  it('accepts the example file and an empty object', () => {
    const example = readFileSync(join(import.meta.dirname, '../../examples/redrive.yaml'), 'utf8')
    expect(accepts(schema, parse(example))).toBe(true)
    expect(accepts(schema, {})).toBe(true)
  })

  it.each(badFiles.filter(([, , says]) => !beyondSchema.test(says) || says === 'true or false'))(
    'rejects %s',
    (yaml) => {
      expect(accepts(schema, parse(yaml))).toBe(false)
    },
  )
})
