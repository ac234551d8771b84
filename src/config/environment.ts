import { nearest } from '../check/nearest.ts'
import { parseValue } from './parse-value.ts'
import { choicesOf, nodeAt } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { emptyTree, layerOf, mergeLayers, type Layer, type Problem } from './layer.ts'

export type Environment = Readonly<Record<string, string | undefined>>
/** Returns the contents of a file, or throws. */
export type ReadFile = (path: string) => string

/**
 * Variables that container platforms set for a service named redrive, and variables of our tests.
 */
const foreignVariables =
  /^REDRIVE_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?|REQUIRE_BACKENDS|TEST_.*)$/
/** Variables that a command handler gets. The command may run redrive in turn. */
const handlerVariables = /^REDRIVE_(LETTER_ID|QUEUE|ATTEMPT|IDEMPOTENCY_KEY|CONTENT_TYPE)$/

/**
 * maxRetries is MAX_RETRIES, dlq_max_size is DLQ_MAX_SIZE, rate-limit is RATE_LIMIT (variables have
 * no hyphens).
 */
function toScreamingCase(key: string): string {
  return key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()
}

/**
 * All variables and the key that each sets. Two underscores separate a key from a key of its
 * object.
 */
export const variables: ReadonlyMap<string, Path> = new Map(
  Object.entries(configNode.properties ?? {}).flatMap(([key, node]): [string, Path][] => {
    const name = `REDRIVE_${toScreamingCase(key)}`
    const below = choicesOf(node).flatMap(({ properties = {} }) => Object.keys(properties))
    return [
      [name, [key]],
      ...below.map((inner): [string, Path] => [`${name}__${toScreamingCase(inner)}`, [key, inner]]),
    ]
  }),
)

type Path = readonly [string, ...string[]]

/** Variables that are no settings: the file with the settings, and the token of a command. */
const cliVariables = new Set(['REDRIVE_CONFIG', 'REDRIVE_TOKEN'])

/**
 * Reads the environment. An unknown variable with our prefix is a problem: it is probably a typing
 * error.
 */
export function fromEnvironment(
  env: Environment,
  read: ReadFile,
): { layer: Layer; problems: Problem[] } {
  let layer: Layer = { value: emptyTree(), origins: new Map() }
  const problems: Problem[] = []
  const reject = (from: string, key: string, text: string): void =>
    void problems.push({ key, from, text })
  // Sorted, so that a variable for a whole object comes before those for its keys.
  for (const name of Object.keys(env).sort()) {
    const value = env[name]
    if (!name.startsWith('REDRIVE_') || value === undefined || cliVariables.has(name)) continue
    const byFile = !variables.has(name) && name.endsWith('_FILE')
    const plain = byFile ? name.slice(0, -'_FILE'.length) : name
    const path = variables.get(plain)
    if (!path) {
      const isOurs = env['REDRIVE_LETTER_ID'] !== undefined && handlerVariables.test(name)
      if (!isOurs && !foreignVariables.test(name))
        reject(name, '', `unknown variable; ${hintFor(name)}`)
      continue
    }
    const key = path.join('.')
    if (value === '') reject(name, key, 'is empty: set a value or unset the variable')
    else if (byFile && env[plain] !== undefined)
      reject(name, key, `is set together with ${plain}: set only one of them`)
    else {
      const text = byFile ? readSecret(value, read) : value
      if (text === undefined) reject(name, key, 'names a file that cannot be read')
      else if (text === '') reject(name, key, 'names an empty file')
      else
        layer = mergeLayers(layer, layerOf(path, parseValue(text, nodeAt(path, configNode)), name))
    }
  }
  return { layer, problems }
}

function hintFor(name: string): string {
  const near = nearest(name, [...variables.keys(), ...cliVariables])
  return near === undefined ? 'redrive config schema prints all keys' : `did you mean ${near}?`
}

/** The contents of a file with one secret, without the newline that editors append. */
export function readSecret(path: string, read: ReadFile): string | undefined {
  try {
    return read(path).replace(/\r?\n$/, '')
  } catch {
    return undefined
  }
}

/** Whether a value was read from a file named by a variable. Such a value is never shown. */
export function isFromSecretFile(from: string | undefined): boolean {
  return from !== undefined && !variables.has(from) && /^REDRIVE_.*_FILE$/.test(from)
}
