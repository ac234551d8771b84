import type { z } from 'zod'
import { formatIssues } from '../check/issues.ts'
import { nodeAt } from '../check/schema-node.ts'
import { RedriveError } from '../errors.ts'
import { isFromSecretFile } from './environment.ts'
import { configNode, isSecret } from './json-schema.ts'
import { originOf, problemAt, type Layer, type Problem } from './layer.ts'

/** Options that only code can give. */
const codeOptions = new Set(['backoffs', 'transforms', 'observers', 'onStoreCall', 'clock'])

/**
 * The problems of a configuration: the key, where its value comes from, what is allowed and what
 * was given.
 */
export function problemsOf(
  issues: readonly z.core.$ZodIssue[],
  layer: Layer,
  schema = configNode,
): Problem[] {
  const isHidden = (path: readonly PropertyKey[]): boolean =>
    isSecret(path, schema) ||
    nodeAt(path, schema)?.format === 'uri' ||
    isFromSecretFile(originOf(layer, path))
  const formatted = formatIssues(issues, { schema, value: layer.value, isSecret: isHidden })
  return formatted.map(({ path, isUnknownKey, text }) => {
    if (!isUnknownKey) return problemAt(path, layer, text)
    const isCode = codeOptions.has(String(path.at(-1)))
    const hint = isCode
      ? 'is code, not data: give it to DeadLetterQueue.open'
      : `unknown key; ${text}`
    return problemAt(path, layer, hint)
  })
}

/** A problem as one line. */
export function formatProblem({ key, from, text }: Problem): string {
  const place = from === undefined ? '' : key === '' ? from : ` (${from})`
  return `${key}${place}: ${text}`
}

/** All problems as one error. */
export function invalidConfig(problems: readonly Problem[]): RedriveError {
  const lines = problems.map(formatProblem)
  return new RedriveError(
    'INVALID_CONFIG',
    lines.length === 1
      ? lines[0]!
      : `${lines.length} problems in the configuration\n${lines.map((line) => `  ${line}`).join('\n')}`,
  )
}
