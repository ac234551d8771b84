import type { Target } from '../observers/notify/target.ts'
import { parsePolicy } from '../policy/backoff.ts'
import type { QueueOptions } from '../options/options.ts'
import { findFixWithoutVersion, needsVersion } from '../options/repair-shape.ts'
import { fromEnvironment, type Environment, type ReadFile } from './environment.ts'
import { convertUnits } from './parse-value.ts'
import { fromFlags, type Flags } from './flags.ts'
import { configNode } from './json-schema.ts'
import { emptyTree, isTree, mergeLayers, problemAt, type Layer, type Problem } from './layer.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { invalidConfig, problemsOf } from './problems.ts'
import { readTextFile } from './read-file.ts'
import { configSchema, type ConfigData } from './schema.ts'
import { Secrets } from './secrets.ts'
import { serverOf, type ServerSettings } from './server.ts'
import { settingsOf, defaultStore, type Setting } from './settings.ts'
import { encryptionOf, mailboxesOf, notifyOf, targetsOf, type HandlerTarget } from './targets.ts'
import { workflowOf } from './workflow.ts'
import { readYaml } from './yaml.ts'

/** The file that is read when none is named. */
const defaultFile = 'redrive.yaml'

export interface ConfigSources {
  /** A file that must exist. Default: the one in REDRIVE_CONFIG, else redrive.yaml if it exists. */
  file?: string
  /** Default: the environment of the process. */
  env?: Environment
  /**
   * Values that override the environment and the file: a store URL, and assignments such as
   * `pollMs=3s`.
   */
  flags?: Flags
  /** Returns the contents of a file, or throws. Default: reads from disk. */
  read?: ReadFile
}

const sourceKeys = keysOf<ConfigSources>({ file: true, env: true, flags: true, read: true })

export interface Config {
  /** The URL of the store. */
  store: string
  /** For `DeadLetterQueue.open`. */
  options: QueueOptions
  /** How letters are redelivered, by queue. */
  handlers: ReadonlyMap<string, HandlerTarget>
  /** Where alerts are sent, by name. */
  notify: Readonly<Record<string, Target>>
  /** How `redrive serve` listens, and who may sign in. */
  server: ServerSettings
  /** Every effective value and its origin, without secrets. */
  settings: readonly Setting[]
  /** The file that was read, if one was. */
  file?: string
}

/**
 * Loads the configuration: flags override the environment (`REDRIVE_*`), which overrides the file,
 * which overrides the defaults. Pass `store` and `options` to `DeadLetterQueue.open`. Throws
 * INVALID_CONFIG that names every wrong key, its origin and what is allowed.
 */
export function loadConfig(sources: ConfigSources = {}): Config {
  checkKeys('loadConfig', sources, sourceKeys)
  const examined = examineConfig(sources)
  if ('problems' in examined) throw invalidConfig(examined.problems)
  return examined.config
}

/**
 * The same, with problems as a value. If all problems concern secrets and targets, which only a
 * worker needs, the store and the options are returned as well, for commands that only read
 * letters.
 */
export function examineConfig(
  sources: ConfigSources,
): { config: Config } | { problems: Problem[]; store?: string; options?: QueueOptions } {
  const { env = process.env, flags = {}, read = readTextFile } = sources
  const file = fromFile(sources.file, env, read)
  const environment = fromEnvironment(env, read)
  const flagged = fromFlags(flags)
  const layer = [environment, flagged].reduce(
    (lower, upper) => mergeLayers(lower, upper.layer),
    file.layer,
  )
  const problems = [...file.problems, ...environment.problems, ...flagged.problems]

  const parsed = configSchema.safeParse(convertUnits(layer.value, configNode))
  if (!parsed.success) return { problems: [...problems, ...problemsOf(parsed.error.issues, layer)] }
  const workflow = workflowOf(parsed.data, layer)
  const secrets = new Secrets(layer, env, read)
  const handlers = targetsOf(parsed.data.handlers, secrets)
  const notify = notifyOf(parsed.data.notify, secrets)
  const mailboxes = mailboxesOf(parsed.data.mailboxes, secrets)
  const encryption = encryptionOf(parsed.data.encryption, secrets)
  const server = serverOf(parsed.data.server, secrets)
  const store = parsed.data.store ?? defaultStore
  problems.push(...workflow.problems)
  const unversioned = findFixWithoutVersion(parsed.data)
  if (unversioned) problems.push(problemAt(unversioned, layer, needsVersion))
  if (problems.length > 0) return { problems: [...problems, ...secrets.problems] }
  const options = {
    ...optionsOf({ ...parsed.data, ...workflow.options }),
    ...(mailboxes ? { mailboxes } : {}),
    ...(encryption ? { encryption } : {}),
  }
  if (secrets.problems.length > 0) return { problems: secrets.problems, store, options }

  const config: Config = {
    store,
    options,
    handlers,
    notify,
    server,
    settings: settingsOf(parsed.data, layer, workflow),
  }
  return { config: file.name === undefined ? config : { ...config, file: file.name } }
}

interface FromFile {
  layer: Layer
  problems: Problem[]
  name?: string
}

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'the file does not exist',
  EISDIR: 'is a folder: name a file in it',
  EACCES: 'permission denied: this user must not read the file',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'the file is not UTF-8',
}

function fromFile(file: string | undefined, env: Environment, read: ReadFile): FromFile {
  const named = file ?? env['REDRIVE_CONFIG']
  const name = named ?? defaultFile
  const empty: Layer = { value: emptyTree(), origins: new Map() }
  let text: string
  if (name === '') {
    const from = file === undefined ? 'REDRIVE_CONFIG' : '--config'
    const problem = { key: '', from, text: 'is empty: name a file or remove it' }
    return { layer: empty, problems: [problem] }
  }
  try {
    text = read(name)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ENOENT' && named === undefined) return { layer: empty, problems: [] }
    const why = unreadable[String(code)] ?? 'the file cannot be read, or is larger than 1 MiB'
    return { layer: empty, problems: [{ key: '', from: name, text: why }] }
  }
  const { value, origins, problems } = readYaml(text, (line) => `${name}:${line}`)
  const found = { problems, name }
  if (value === null || value === undefined) return { ...found, layer: empty }
  if (isTree(value)) return { ...found, layer: { value, origins } }
  const problem = { key: '', from: name, text: 'must be an object with keys and values' }
  return { ...found, layer: empty, problems: [...problems, problem] }
}

const nonOptionKeys = ['store', 'handlers', 'mailboxes', 'notify', 'encryption', 'server']

/** The keys that are options of a queue, with every backoff as a full policy. */
function optionsOf(data: ConfigData): QueueOptions {
  const options = Object.fromEntries(
    Object.entries(data).filter(([key]) => !nonOptionKeys.includes(key) && !key.startsWith('dlq_')),
  )
  const { queues, rules } = data
  if (queues)
    options['queues'] = Object.fromEntries(
      Object.entries(queues).map(([name, policy]) => [name, expandBackoff(policy)]),
    )
  if (rules) options['rules'] = rules.map(expandBackoff)
  return expandBackoff(options)
}

function expandBackoff<T extends { backoff?: unknown }>(policy: T): T {
  const backoff = parsePolicy(policy.backoff)
  return backoff ? { ...policy, backoff } : policy
}
