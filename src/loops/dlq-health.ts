import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded } from '../backends/bounds.ts'
import { checkOptions, listenerKeys, requireMailbox } from './check-options.ts'
import { createEmit, type Listeners } from './events.ts'
import { depthEvent, measureMailbox } from './queue-depth.ts'

export interface DlqHealthOptions extends Listeners {
  /** This many messages or more are a problem. Default: 100. */
  threshold?: number
  /** A message that has waited for longer than this is a problem, where the broker can browse. */
  oldestAgeSeconds?: number
  clock?: Clock
}

export interface DlqHealth {
  status: 'healthy' | 'degraded'
  dlq: {
    name: string
    /** Visible and hidden messages. Absent if they could not be counted. */
    depth?: number
    threshold: number
    /** The age of the oldest message. Absent if there is none, or if the broker cannot browse. */
    oldestAgeSeconds?: number
  }
  problems: string[]
}

const healthKeys = [
  ...listenerKeys,
  ...keysOf<Omit<DlqHealthOptions, keyof Listeners>>({
    threshold: true,
    oldestAgeSeconds: true,
    clock: true,
  }),
]

/**
 * Reports the state of a dead letter queue. An unreachable broker is reported as a problem: only
 * invalid options reject.
 */
export async function dlqHealth(
  mailbox: Mailbox,
  options: DlqHealthOptions = {},
): Promise<DlqHealth> {
  requireMailbox('dlqHealth', 'mailbox', mailbox)
  checkOptions('dlqHealth', options, healthKeys)
  const { threshold = 100, oldestAgeSeconds, clock = systemClock } = options
  bounded('threshold', threshold, Infinity)
  bounded('oldestAgeSeconds', oldestAgeSeconds ?? 0, Infinity)
  const dlq: DlqHealth['dlq'] = { name: mailbox.name, threshold }
  const problems: string[] = []
  try {
    const measured = depthEvent(await measureMailbox(mailbox), clock.now())
    const { depth, oldestAgeSeconds: ageSeconds } = measured
    dlq.depth = depth
    createEmit(options)(measured)
    if (depth >= threshold) problems.push(`${depth} dead letters, the threshold is ${threshold}`)
    if (ageSeconds !== undefined) dlq.oldestAgeSeconds = ageSeconds
    if (ageSeconds !== undefined && oldestAgeSeconds !== undefined && ageSeconds > oldestAgeSeconds)
      problems.push(`the oldest dead letter has waited for ${Math.round(ageSeconds)} s`)
  } catch (error) {
    const why = error instanceof RedriveError ? error.code : 'an unknown error'
    problems.push(`${mailbox.name} cannot be inspected: ${why}`)
  }
  return { status: problems.length > 0 ? 'degraded' : 'healthy', dlq, problems }
}
