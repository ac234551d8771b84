import { isDeepStrictEqual } from 'node:util'
import { parsePolicy } from '../policy/backoff.ts'
import { originOf, problemAt, type Layer, type Problem } from './layer.ts'
import type { ConfigData } from './schema.ts'

/**
 * Each setting of the older design: what it is called here, what its value becomes, and what it is where only
 * `dlq_enabled: true` is said.
 */
const twins = [
  { old: 'dlq_enabled', ours: 'capture', usual: true },
  { old: 'dlq_retry_processor_enabled', ours: 'redeliver', usual: true },
  { old: 'dlq_max_size', ours: 'maxItems', usual: 10_000 },
  { old: 'dlq_default_retry_policy', ours: 'backoff', usual: 'exponential' },
  { old: 'dlq_default_max_retries', ours: 'maxRetries', usual: 3 },
  { old: 'dlq_retry_interval_seconds', ours: 'pollMs', usual: 60 },
] as const

/** The defaults of the older design, for the page that lists them. */
export const workflowDefaults: Readonly<Record<string, unknown>> = Object.fromEntries(
  twins.map(({ old, usual }) => [old, usual]),
)

export interface Workflow {
  /** Its settings under our names, and where each comes from. */
  options: Partial<
    Pick<ConfigData, 'maxItems' | 'backoff' | 'maxRetries' | 'pollMs' | 'capture' | 'redeliver'>
  >
  origins: ReadonlyMap<string, string>
  problems: Problem[]
}

/** What the settings of the older design mean. One that contradicts its twin is a problem. */
export function workflowOf(data: ConfigData, layer: Layer): Workflow {
  const problems: Problem[] = []
  const origins = new Map<string, string>()
  const options: Record<string, unknown> = {}
  for (const { old, ours, usual } of twins) {
    const said = data[old]
    const value = said ?? (data.dlq_enabled === true ? usual : undefined)
    if (value === undefined) continue
    const meant = ours === 'pollMs' ? Number(value) * 1000 : value
    const from = originOf(layer, [said === undefined ? 'dlq_enabled' : old])
    const twin = data[ours]
    if (twin === undefined) {
      options[ours] = meant
      origins.set(ours, `${said === undefined ? 'dlq_enabled' : old}${from ? `, ${from}` : ''}`)
    } else if (said !== undefined && !same(meant, twin))
      problems.push(
        problemAt(
          [old],
          layer,
          `says otherwise than ${ours} (${originOf(layer, [ours])}): give one of them`,
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

function same(meant: unknown, twin: unknown): boolean {
  return isDeepStrictEqual(parsePolicy(meant) ?? meant, parsePolicy(twin) ?? twin)
}
