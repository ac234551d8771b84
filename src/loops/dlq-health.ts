import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded } from '../backends/bounds.ts'
import { checkOptions, listeningKeys, requireMailbox } from './check-options.ts'
import { teller, type Listening } from './events.ts'
import { depthEvent, measureMailbox } from './queue-depth.ts'

export interface DlqHealthOptions extends Listening {
  /** As many messages or more are a reason to look. 100 unless said. */
  threshold?: number
  /** And so is one that has waited for longer than this, where the broker lets us look. */
  oldestAgeSeconds?: number
  clock?: Clock
}

export interface DlqHealth {
  status: 'healthy' | 'degraded'
  dlq: {
    name: string
    /** Waiting and hidden ones. Absent: it could not be counted. */
    depth?: number
    threshold: number
    /** Of the oldest message. Absent: there is none, or it cannot be seen. */
    oldestAgeSeconds?: number
  }
  problems: string[]
}

const healthKeys = [
  ...listeningKeys,
  ...keysOf<Omit<DlqHealthOptions, keyof Listening>>({
    threshold: true,
    oldestAgeSeconds: true,
    clock: true,
  }),
]

/** How a dead letter queue stands. A broker that is away is a problem like others: only wrong options reject. */
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
    teller(options)(measured)
    if (depth >= threshold) problems.push(`${depth} dead letters, the threshold is ${threshold}`)
    if (ageSeconds !== undefined) dlq.oldestAgeSeconds = ageSeconds
    if (ageSeconds !== undefined && oldestAgeSeconds !== undefined && ageSeconds > oldestAgeSeconds)
      problems.push(`the oldest dead letter has waited for ${Math.round(ageSeconds)} s`)
  } catch (error) {
    const why = error instanceof RedriveError ? error.code : 'an unknown error'
    problems.push(`${mailbox.name} cannot be looked at: ${why}`)
  }
  return { status: problems.length > 0 ? 'degraded' : 'healthy', dlq, problems }
}
