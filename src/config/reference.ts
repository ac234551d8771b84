import { defaults } from '../options/options.ts'
import { variables } from './environment.ts'
import { choicesOf, describeNode, type SchemaNode } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { defaultStore } from './settings.ts'
import { formatUnits } from '../check/units.ts'
import { workflowDefaults } from './workflow.ts'

/** The reference page of all keys, generated from the schema. */
export function configPage(): string {
  const rows = Object.entries(configNode.properties ?? {}).flatMap(([key, node]) =>
    rowsOf(key, node),
  )
  return [
    '# Configuration keys',
    '',
    'The keys that `redrive work` and `redrive config check` read from `redrive.yaml`, the environment',
    'and `--set`. The [guide](../guides/config.md) explains how these are combined.',
    '[`config.schema.json`](config.schema.json) is the JSON Schema for editors. A key that ends in `Ms`',
    'accepts durations such as `250ms`, `30s`, `5m`, `2h` and `1d`; a key that ends in `Bytes` accepts',
    'sizes such as `512B`, `64KiB`, `16MiB` and `1GiB`.',
    '',
    '| key | description | allowed | default | variable |',
    '|---|---|---|---|---|',
    ...rows.map(({ key, node }) => {
      const cells = [
        `\`${key}\``,
        node.description,
        describeNode(node),
        defaultOf(key),
        variableOf(key),
      ]
      return `| ${cells.map((cell = '') => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
    }),
    '',
    'For every variable `X`, `X_FILE` may name a file that contains the value instead.',
  ].join('\n')
}

export interface Row {
  key: string
  node: SchemaNode
}

/** Keys whose inner keys are listed elsewhere in the table or in a guide. */
const listedElsewhere = new Set(['queues', 'dependencies'])

/** The rows of a key and of the keys below it. A key that several alternatives have is one row. */
export function rowsOf(key: string, node: SchemaNode): Row[] {
  const below = listedElsewhere.has(key)
    ? []
    : choicesOf(node).flatMap((one) => rowsBelow(key, one))
  const byKey = Map.groupBy(below, (row) => row.key)
  const rows = [...byKey].map(([name, same]): Row => {
    const [first] = same
    if (first && same.length === 1) return first
    const anyOf = same.map((row) => row.node)
    return { key: name, node: { description: first?.node.description ?? '', anyOf } }
  })
  return [{ key, node }, ...rows]
}

function rowsBelow(key: string, { properties, additionalProperties, items }: SchemaNode): Row[] {
  const inner = Object.entries(properties ?? {}).flatMap(([name, node]) =>
    rowsOf(`${key}.${name}`, node),
  )
  if (typeof additionalProperties === 'object')
    inner.push(...choicesOf(additionalProperties).flatMap((one) => rowsBelow(`${key}.NAME`, one)))
  if (items) inner.push(...choicesOf(items).flatMap((one) => rowsBelow(`${key}[]`, one)))
  return inner
}

const allDefaults: Readonly<Record<string, unknown>> = {
  ...defaults,
  ...workflowDefaults,
  store: defaultStore,
}

function defaultOf(key: string): string {
  const value = allDefaults[key]
  if (value === undefined || typeof value === 'object') return ''
  if (value === Infinity) return 'no limit'
  return `\`${String(inKeyUnits(key, value))}\``
}

/** A value with the unit that its key accepts. */
export function inKeyUnits(key: string, value: unknown): unknown {
  if (typeof value !== 'number') return value
  if (key.endsWith('Ms')) return formatUnits(value, 'duration')
  return key.endsWith('Bytes') ? formatUnits(value, 'size') : value
}

function variableOf(key: string): string {
  const found = [...variables].find(([, path]) => path.join('.') === key)
  return found ? `\`${found[0]}\`` : ''
}
