import { systemClock, type Clock } from '../clock.ts'
import { RedriveError } from '../errors.ts'
import { toMs } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import { teller, type Listening } from './events.ts'

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

/** How a dead letter queue stands. A broker that is away is a problem like others. Never rejects. */
export async function dlqHealth(
  mailbox: Mailbox,
  options: DlqHealthOptions = {},
): Promise<DlqHealth> {
  const { threshold = 100, oldestAgeSeconds, clock = systemClock } = options
  const dlq: DlqHealth['dlq'] = { name: mailbox.name, threshold }
  const problems: string[] = []
  try {
    const depth = await mailbox.approximateCount()
    dlq.depth = depth
    teller(options)({ type: 'depth', mailbox: mailbox.name, depth })
    if (depth >= threshold) problems.push(`${depth} dead letters, the threshold is ${threshold}`)
    const ageSeconds = await oldestAge(mailbox, clock)
    if (ageSeconds !== undefined) dlq.oldestAgeSeconds = ageSeconds
    if (ageSeconds !== undefined && oldestAgeSeconds !== undefined && ageSeconds > oldestAgeSeconds)
      problems.push(`the oldest dead letter has waited for ${Math.round(ageSeconds)} s`)
  } catch (error) {
    const why = error instanceof RedriveError ? error.code : 'an unknown error'
    problems.push(`${mailbox.name} cannot be looked at: ${why}`)
  }
  return { status: problems.length > 0 ? 'degraded' : 'healthy', dlq, problems }
}

async function oldestAge(mailbox: Mailbox, clock: Clock): Promise<number | undefined> {
  const oldest = (await mailbox.browse?.({ limit: 1 }))?.messages[0]
  return oldest && Math.max(0, (clock.now() - toMs(oldest.enqueuedAt)) / 1000)
}
