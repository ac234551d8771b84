import { defaults } from '../options/options.ts'
import { variables } from './environment.ts'
import { choicesOf, describeNode, type SchemaNode } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { usualStore } from './settings.ts'
import { formatUnits } from '../check/units.ts'
import { workflowDefaults } from './workflow.ts'

/** The page that lists every key. It is made from the schema that checks them. */
export function configPage(): string {
  const rows = Object.entries(configNode.properties ?? {}).flatMap(([key, node]) =>
    rowsOf(key, node),
  )
  return [
    '# Configuration keys',
    '',
    'What `redrive work` and `redrive config check` read from `redrive.yaml`, the environment and `--set`. The [guide](../guides/config.md)',
    'says how they go together; [`config.schema.json`](config.schema.json) is the same for editors. Where a key ends in `Ms`, a duration may be',
    'written as `250ms`, `30s`, `5m`, `2h` or `1d`; where it ends in `Bytes`, a size as `512B`, `64KiB`, `16MiB` or `1GiB`.',
    '',
    '| key | what it is | allowed | default | variable |',
    '|---|---|---|---|---|',
    ...rows.map(({ key, node }) => {
      const cells = [
        `\`${key}\``,
        node.description,
        describeNode(node),
        usual(key),
        variableOf(key),
      ]
      return `| ${cells.map((cell = '') => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
    }),
    '',
    'Every variable `X` can also be given as `X_FILE`, the path of a file that holds the value.',
  ].join('\n')
}

export interface Row {
  key: string
  node: SchemaNode
}

/** Keys whose inside stands in the table already, or in a guide. */
const toldElsewhere = new Set(['queues', 'dependencies'])

/** A key, and what stands below it. A key of several forms of the same thing is one row. */
export function rowsOf(key: string, node: SchemaNode): Row[] {
  const below = toldElsewhere.has(key) ? [] : choicesOf(node).flatMap((one) => rowsBelow(key, one))
  const together = Map.groupBy(below, (row) => row.key)
  const rows = [...together].map(([name, same]): Row => {
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

const usually: Readonly<Record<string, unknown>> = {
  ...defaults,
  ...workflowDefaults,
  store: usualStore,
}

function usual(key: string): string {
  const value = usually[key]
  if (value === undefined || typeof value === 'object') return ''
  if (value === Infinity) return 'no limit'
  return `\`${String(inKeyUnits(key, value))}\``
}

/** A value as people would write it for this key. */
export function inKeyUnits(key: string, value: unknown): unknown {
  if (typeof value !== 'number') return value
  if (key.endsWith('Ms')) return formatUnits(value, 'duration')
  return key.endsWith('Bytes') ? formatUnits(value, 'size') : value
}

function variableOf(key: string): string {
  const found = [...variables].find(([, path]) => path.join('.') === key)
  return found ? `\`${found[0]}\`` : ''
}
