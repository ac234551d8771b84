import { Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import {
  describeBackoff,
  describeBreaker,
  describeBudget,
  describeConcurrency,
} from '../../format/policy.ts'
import { formatDuration } from '../../format/time.ts'
import { ButtonLink } from '../../ui/button-link.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { StateCounts } from '../../ui/state-counts.tsx'
import { Age } from '../../ui/time.tsx'
import { PauseButton } from './pause-button.tsx'
import { QueueStatus } from './queue-status.tsx'

type QueueDetail = OutputOf<'getQueue'>

const route = getRouteApi('/signed-in/queues/$queue')

/** One queue: what waits, what happened lately, and what decides when its letters run. */
export function QueuePage() {
  const { queue } = route.useParams()
  const detail = useQuery(queries.queue(queue))
  return (
    <Page
      title={<bdi>{queue}</bdi>}
      label={queue}
      description="Queue"
      actions={
        <>
          <ButtonLink to="/letters" search={{ queue: [queue] }} variant="default">
            Show letters
          </ButtonLink>
          {detail.data && <PauseButton queue={queue} isPaused={detail.data.paused !== undefined} />}
        </>
      }
    >
      <Loaded query={detail}>{(data) => <QueueParts detail={data} />}</Loaded>
    </Page>
  )
}

function QueueParts({ detail }: { detail: QueueDetail }) {
  const { count, states, oldest, paused, limiter, lastHour } = detail
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing={16}>
      <Stack gap={16}>
        <Panel title="Now">
          <Facts
            facts={[
              ['Status', <QueueStatus key="status" paused={paused} limiter={limiter} />],
              ['Letters', formatCount(count)],
              ['By state', <StateCounts key="states" states={states} />],
              ['Oldest open', oldest && <OldestLetter key="oldest" oldest={oldest} />],
              ['Running', limiter && runningText(limiter)],
            ]}
          />
        </Panel>
        <Panel title="Last hour">
          {lastHour === null ? (
            <Text size="sm" c="dimmed">
              The server takes a sample every 5 minutes. There are no samples of this queue yet.
            </Text>
          ) : (
            <Group gap={32}>
              <Figure label="captured" value={lastHour.captured} />
              <Figure label="resolved" value={lastHour.resolved} />
              <Figure label="failed again" value={lastHour.failed} />
            </Group>
          )}
        </Panel>
      </Stack>
      <Panel title="Policy in force">
        <PolicyFacts policy={detail.policy} />
      </Panel>
    </SimpleGrid>
  )
}

function OldestLetter({ oldest }: { oldest: NonNullable<QueueDetail['oldest']> }) {
  return (
    <Link to="/letters/$id" params={{ id: oldest.id }}>
      <Age since={oldest.at} />
    </Link>
  )
}

function runningText({ inFlight, limit, recovering }: NonNullable<QueueDetail['limiter']>): string {
  const most = limit === undefined ? '' : ` of at most ${formatCount(limit)}`
  return `${formatAmount(inFlight, 'letter')}${most}${recovering ? ', recovering after an outage' : ''}`
}

function Figure({ label, value }: { label: string; value: number }) {
  return (
    <div>
      <Text fz={20} fw={600} className="numbers">
        {formatCount(value)}
      </Text>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
    </div>
  )
}

function PolicyFacts({ policy }: { policy: QueueDetail['policy'] }) {
  const byCategory = Object.entries(policy.maxRetriesByCategory)
  const { retention, redact } = policy
  return (
    <Facts
      facts={[
        ['Retries', formatAmount(policy.maxRetries, 'retry', 'retries')],
        [
          'By category',
          byCategory.length > 0 && byCategory.map(([name, most]) => `${name} ${most}`).join(', '),
        ],
        ['Retry for', policy.retryForMs !== undefined && formatDuration(policy.retryForMs)],
        [
          'Backoff',
          policy.backoff ? describeBackoff(policy.backoff) : 'by category of the failure',
        ],
        ['Priority', policy.priority],
        ['Timeout', formatDuration(policy.timeoutMs)],
        [
          'Archived after',
          retention?.archiveAfterMs !== undefined && formatDuration(retention.archiveAfterMs),
        ],
        [
          'Removed after',
          retention?.removeAfterMs === undefined
            ? 'never'
            : formatDuration(retention.removeAfterMs),
        ],
        ['Dependency', policy.dependency],
        ['Replay', replayTexts[policy.replay]],
        ['Needs a fix', policy.requireFix && 'Letters of a group run only after a fix.'],
        ['Redaction', redact && (redact.atCapture ? 'at capture' : 'when shown')],
        ['Locked headers', policy.lockedHeaders.length > 0 && policy.lockedHeaders.join(', ')],
        ['Breaker', describeBreaker(policy.breaker)],
        ['Rate limit', policy.budget ? describeBudget(policy.budget) : 'none'],
        ['Concurrency', describeConcurrency(policy.concurrency)],
      ]}
    />
  )
}

const replayTexts = {
  safe: 'safe: a message may be published again',
  'idempotent-key': 'safe with the same idempotency key',
  never: 'never: a second message would do harm',
} as const
