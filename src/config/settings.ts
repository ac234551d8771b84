import { defaults } from '../options/options.ts'
import { isFromSecretFile } from './environment.ts'
import { isSecret } from './json-schema.ts'
import { dotted, isTree, originOf, type Layer, type Path } from './layer.ts'
import type { ConfigData } from './schema.ts'
import type { Workflow } from './workflow.ts'

/** One effective value and its origin. */
export interface Setting {
  key: string
  value: unknown
  from: string
  /** True: the value is secret, and replaced by asterisks here. */
  secret?: true
}

/** The default store. */
export const defaultStore = 'sqlite:redrive.db'

const allDefaults: Readonly<Record<string, unknown>> = { store: defaultStore, ...defaults }
const codeOptions = ['backoffs', 'transforms', 'observers', 'onStoreCall']

/**
 * Every effective value: given ones, those that follow from dlq_ keys, then the defaults. Secrets
 * are masked.
 */
export function settingsOf(data: ConfigData, layer: Layer, workflow: Workflow): Setting[] {
  const given = Object.entries(data).flatMap(([key, value]) => leaves([key], value, layer))
  const derived = Object.entries(workflow.options).map(([key, value]): Setting => ({
    key,
    value,
    from: workflow.origins.get(key) ?? '',
  }))
  const rest = Object.entries(allDefaults)
    .filter(([key]) => !(key in data) && !(key in workflow.options) && !codeOptions.includes(key))
    .map(([key, value]): Setting => ({ key, value: formatDefault(value), from: 'default' }))
  return [...given, ...derived, ...rest]
}

/** JSON has no Infinity. */
function formatDefault(value: unknown): unknown {
  return value === Infinity ? 'no limit' : value
}

function leaves(path: Path, value: unknown, layer: Layer): Setting[] {
  const from = originOf(layer, path) ?? ''
  const key = dotted(path)
  if (isSecret(path) || isFromSecretFile(from)) return [{ key, value: '***', from, secret: true }]
  if (isTree(value) && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([name, inner]) => leaves([...path, name], inner, layer))
  return [{ key, value, from }]
}
