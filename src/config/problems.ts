import type { z } from 'zod'
import { RedriveError } from '../errors.ts'
import { nearest } from '../check/nearest.ts'
import { fromSecretFile } from './environment.ts'
import { configNode, inWords, isSecret, keysAt, nodeAt, type Node } from './json-schema.ts'
import { originOf, problemAt, valueAt, type Layer, type Problem } from './layer.ts'

type Issue = z.core.$ZodIssue

/** Keys that somebody may look for, and why they are not here. */
const elsewhere: Readonly<Record<string, string>> = {
  backoffs: 'is code, not data: give it where you open the queue',
  observers: 'is code, not data: give it where you open the queue',
  clock: 'is code, not data: give it where you open the queue',
}

/** What the schema found, in words: the key, where it comes from, what is allowed and what was got. */
export function problemsOf(issues: readonly Issue[], layer: Layer, schema = configNode): Problem[] {
  return issues.flatMap((issue) => problemsOfOne(issue, [], layer, schema))
}

function problemsOfOne(
  issue: Issue,
  above: readonly PropertyKey[],
  layer: Layer,
  schema: Node,
): Problem[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) =>
      problemAt([...path, key], layer, unknown(key, path, layer, schema)),
    )
  if (issue.code === 'invalid_union') {
    // Of several forms the one is meant that the value has already, if it has one.
    const meant = issue.errors.find((errors) => errors.every((one) => one.path.length > 0))
    if (meant) return meant.flatMap((one) => problemsOfOne(one, path, layer, schema))
  }
  if (issue.code === 'custom') return [problemAt(path, layer, issue.message)]
  if (issue.code === 'invalid_key')
    return [problemAt(path, layer, 'is no name: 1 to 200 characters, none of them a control')]
  return [problemAt(path, layer, wrong(path, layer, schema))]
}

function unknown(key: string, path: readonly PropertyKey[], layer: Layer, schema: Node): string {
  if (Object.hasOwn(elsewhere, key)) return elsewhere[key]!
  const known = keysAt(path, schema)
  // Of several forms another one has it. It may come from another source than the kind does, since maps are joined.
  if (known.includes(key)) {
    const kind = valueAt(layer.value, [...path, 'kind'])
    return `is not known ${kind === undefined ? 'beside the other keys here' : `for kind ${shown(kind)}`}`
  }
  const near = nearest(key, known)
  return near === undefined
    ? `is not known: known are ${known.join(', ')}`
    : `is not known: did you mean "${near}"?`
}

function wrong(path: readonly PropertyKey[], layer: Layer, schema: Node): string {
  const node = nodeAt(path, schema)
  const allowed = node ? inWords(node) : 'something else'
  const got = valueAt(layer.value, path)
  if (got === undefined) return `is missing: it must be ${allowed}`
  if (got === null || got === '') return `is empty: it must be ${allowed}`
  const hidden =
    isSecret(path, schema) || node?.format === 'uri' || fromSecretFile(originOf(layer, path))
  return `must be ${allowed}, got ${hidden ? 'something that is not shown' : shown(got)}`
}

const maxShown = 60

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'nothing'
  return JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
}

/** A problem as one line. */
export function told({ key, from, text }: Problem): string {
  const where = from === undefined ? '' : key === '' ? from : ` (${from})`
  return `${key}${where}: ${text}`
}

/** All problems as one error. */
export function invalidConfig(problems: readonly Problem[]): RedriveError {
  const [first] = problems
  return new RedriveError(
    'INVALID_CONFIG',
    first && problems.length === 1
      ? told(first)
      : `${problems.length} problems in the configuration\n${problems.map((one) => `  ${told(one)}`).join('\n')}`,
  )
}
