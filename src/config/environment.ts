import { nearest } from '../check/nearest.ts'
import { parseValue } from './parse-value.ts'
import { choicesOf, nodeAt } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { emptyTree, layerOf, over, type Layer, type Problem } from './layer.ts'

export type Environment = Readonly<Record<string, string | undefined>>
/** Gives the text of a file, or throws. */
export type ReadFile = (path: string) => string

/** What a container platform sets for a service of our name, and what our own tests use. */
const foreign = /^REDRIVE_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?|REQUIRE_BACKENDS|TEST_.*)$/
/** What a command that runs a letter is told. It may run us in turn. */
const told = /^REDRIVE_(LETTER_ID|QUEUE|ATTEMPT|IDEMPOTENCY_KEY|CONTENT_TYPE)$/

/** maxRetries is MAX_RETRIES, dlq_max_size is DLQ_MAX_SIZE, and rate-limit is RATE_LIMIT: shells take no hyphen in a name. */
function screaming(key: string): string {
  return key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()
}

/** Every variable that sets something: each key, and with two underscores the keys of its map. */
export const variables: ReadonlyMap<string, Path> = new Map(
  Object.entries(configNode.properties ?? {}).flatMap(([key, node]): [string, Path][] => {
    const name = `REDRIVE_${screaming(key)}`
    const below = choicesOf(node).flatMap(({ properties = {} }) => Object.keys(properties))
    return [
      [name, [key]],
      ...below.map((inner): [string, Path] => [`${name}__${screaming(inner)}`, [key, inner]]),
    ]
  }),
)

type Path = readonly [string, ...string[]]

/** What the environment sets. A variable of our prefix that sets nothing is a problem: it was meant to. */
export function fromEnvironment(
  env: Environment,
  read: ReadFile,
): { layer: Layer; problems: Problem[] } {
  let layer: Layer = { value: emptyTree(), origins: new Map() }
  const problems: Problem[] = []
  const refuse = (from: string, key: string, text: string): void =>
    void problems.push({ key, from, text })
  // A variable for a whole map goes before those for its parts.
  for (const name of Object.keys(env).sort()) {
    const value = env[name]
    if (!name.startsWith('REDRIVE_') || value === undefined || name === 'REDRIVE_CONFIG') continue
    const byFile = !variables.has(name) && name.endsWith('_FILE')
    const plain = byFile ? name.slice(0, -'_FILE'.length) : name
    const path = variables.get(plain)
    if (!path) {
      const ours = env['REDRIVE_LETTER_ID'] !== undefined && told.test(name)
      if (!ours && !foreign.test(name)) refuse(name, '', `is not known: ${hint(name)}`)
      continue
    }
    const key = path.join('.')
    if (value === '') refuse(name, key, 'is empty: give it a value, or unset it')
    else if (byFile && env[plain] !== undefined)
      refuse(name, key, `stands beside ${plain}: give one of them`)
    else {
      const text = byFile ? readSecret(value, read) : value
      if (text === undefined) refuse(name, key, 'names a file that cannot be read')
      else if (text === '') refuse(name, key, 'names a file that is empty')
      else layer = over(layer, layerOf(path, parseValue(text, nodeAt(path, configNode)), name))
    }
  }
  return { layer, problems }
}

function hint(name: string): string {
  const near = nearest(name, [...variables.keys(), 'REDRIVE_CONFIG'])
  return near === undefined
    ? 'redrive config schema prints every key that there is'
    : `did you mean ${near}?`
}

/** The text of a file that holds one secret: editors and tools end it with a newline that is no part of it. */
export function readSecret(path: string, read: ReadFile): string | undefined {
  try {
    return read(path).replace(/\r?\n$/, '')
  } catch {
    return undefined
  }
}

/** Whether a value came out of a file that is named by a variable: such a value is never shown. */
export function isFromSecretFile(from: string | undefined): boolean {
  return from !== undefined && !variables.has(from) && /^REDRIVE_.*_FILE$/.test(from)
}
