import { defaults } from '../options/options.ts'
import { isFromSecretFile } from './environment.ts'
import { isSecret } from './json-schema.ts'
import { dotted, isTree, originOf, type Layer, type Path } from './layer.ts'
import type { ConfigData } from './schema.ts'
import type { Workflow } from './workflow.ts'

/** One value that is in force, and where it comes from. */
export interface Setting {
  key: string
  value: unknown
  from: string
  /** True: the value is not to be shown. It is left out here already. */
  secret?: true
}

/** Where letters are kept unless somebody says otherwise. */
export const usualStore = 'sqlite:redrive.db'

const usual: Readonly<Record<string, unknown>> = { store: usualStore, ...defaults }
const code = ['backoffs', 'observers']

/** Every value that is in force: what was said, what follows from it, then the defaults. Secrets are left out. */
export function settingsOf(data: ConfigData, layer: Layer, workflow: Workflow): Setting[] {
  const said = Object.entries(data).flatMap(([key, value]) => leaves([key], value, layer))
  const followed = Object.entries(workflow.options).map(([key, value]): Setting => ({
    key,
    value,
    from: workflow.origins.get(key) ?? '',
  }))
  const rest = Object.entries(usual)
    .filter(([key]) => !(key in data) && !(key in workflow.options) && !code.includes(key))
    .map(([key, value]): Setting => ({ key, value: shownDefault(value), from: 'default' }))
  return [...said, ...followed, ...rest]
}

/** JSON has no Infinity, and people have a word for it. */
function shownDefault(value: unknown): unknown {
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
