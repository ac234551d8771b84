import { Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import type { Column } from '../../ui/data-table.tsx'
import { QueueStatus } from './queue-status.tsx'

type Queue = OutputOf<'listQueues'>['items'][number]

export const queueColumn: Column<Queue> = {
  title: 'Queue',
  cell: ({ queue }) => (
    <Link to="/queues/$queue" params={{ queue }} className="plain">
      <bdi>{queue}</bdi>
    </Link>
  ),
}

export function statusColumn(limiters: OutputOf<'getFlowControl'>): Column<Queue> {
  return {
    title: 'Status',
    cell: ({ queue, paused }) => (
      <QueueStatus
        paused={paused}
        limiter={limiters.find(({ kind, name }) => kind === 'queue' && name === queue)}
      />
    ),
  }
}
