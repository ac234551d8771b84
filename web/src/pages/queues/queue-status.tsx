import { Badge, Tooltip } from '@mantine/core'
import type { OutputOf } from 'redrive/api'
import { useNow } from '../../app/preferences.tsx'
import { formatRelative } from '../../format/time.ts'

type Limiter = OutputOf<'getFlowControl'>[number]
type Pause = OutputOf<'listPausedQueues'>[number]

/** Whether the letters of a queue run now, and why not. */
export function QueueStatus({
  paused,
  limiter,
}: {
  paused: Pause | undefined
  limiter: Limiter | undefined
}) {
  const now = useNow()
  if (paused)
    return (
      <Tooltip label={`Paused by ${paused.by} ${formatRelative(paused.at, now)}: ${paused.reason}`}>
        <Badge color="yellow" tabIndex={0}>
          paused
        </Badge>
      </Tooltip>
    )
  if (limiter?.state === 'open')
    return (
      <Tooltip
        label={`Too many letters failed in a row, so the circuit breaker lets none run. ${
          limiter.until ? `The next one is tried ${formatRelative(limiter.until, now)}.` : ''
        }`}
      >
        <Badge color="red" tabIndex={0}>
          breaker open
        </Badge>
      </Tooltip>
    )
  if (limiter?.state === 'half-open')
    return (
      <Tooltip label="The circuit breaker lets a few letters run, to see whether they succeed.">
        <Badge color="yellow" tabIndex={0}>
          breaker probing
        </Badge>
      </Tooltip>
    )
  return <Badge color="gray">running</Badge>
}
