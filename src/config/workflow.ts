import { isDeepStrictEqual } from 'node:util'
import { parsePolicy } from '../policy/backoff.ts'
import { originOf, problemAt, type Layer, type Problem } from './layer.ts'
import type { ConfigData } from './schema.ts'

/**
 * Each setting of the older design, the option that it is an alias of, and its default under
 * `dlq_enabled: true`.
 */
const aliases = [
  { old: 'dlq_enabled', option: 'capture', defaultValue: true },
  { old: 'dlq_retry_processor_enabled', option: 'redeliver', defaultValue: true },
  { old: 'dlq_max_size', option: 'maxItems', defaultValue: 10_000 },
  { old: 'dlq_default_retry_policy', option: 'backoff', defaultValue: 'exponential' },
  { old: 'dlq_default_max_retries', option: 'maxRetries', defaultValue: 3 },
  { old: 'dlq_retry_interval_seconds', option: 'pollMs', defaultValue: 60 },
] as const

/** The defaults of the older design, for the reference page. */
export const workflowDefaults: Readonly<Record<string, unknown>> = Object.fromEntries(
  aliases.map(({ old, defaultValue }) => [old, defaultValue]),
)

export interface Workflow {
  /** The settings under our names, and the origin of each. */
  options: Partial<
    Pick<ConfigData, 'maxItems' | 'backoff' | 'maxRetries' | 'pollMs' | 'capture' | 'redeliver'>
  >
  origins: ReadonlyMap<string, string>
  problems: Problem[]
}

/**
 * Translates the settings of the older design. One that contradicts the option it is an alias of is
 * a problem.
 */
export function workflowOf(data: ConfigData, layer: Layer): Workflow {
  const problems: Problem[] = []
  const origins = new Map<string, string>()
  const options: Record<string, unknown> = {}
  for (const { old, option, defaultValue } of aliases) {
    const given = data[old]
    const value = given ?? (data.dlq_enabled === true ? defaultValue : undefined)
    if (value === undefined) continue
    const translated = option === 'pollMs' ? Number(value) * 1000 : value
    const from = originOf(layer, [given === undefined ? 'dlq_enabled' : old])
    const current = data[option]
    if (current === undefined) {
      options[option] = translated
      origins.set(option, `${given === undefined ? 'dlq_enabled' : old}${from ? `, ${from}` : ''}`)
    } else if (given !== undefined && !isSame(translated, current))
      problems.push(
        problemAt(
          [old],
          layer,
          `contradicts ${option} (${originOf(layer, [option])}): set only one of them`,
        ),
      )
  }
  // In the older design, turning the queue off turns its processor off as well.
  if (data.dlq_enabled === false && data.redeliver === undefined) {
    options['redeliver'] = false
    origins.set('redeliver', origins.get('capture') ?? 'dlq_enabled')
  }
  return { options, origins, problems }
}

function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(parsePolicy(a) ?? a, parsePolicy(b) ?? b)
}
