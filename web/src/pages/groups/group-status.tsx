import { Badge } from '@mantine/core'
import type { GroupView } from 'redrive/api'

type Status = GroupView['status']

const meanings: Record<Status, string> = {
  open: 'Nobody has decided anything about this cause.',
  regressed: 'It was resolved, and then seen again.',
  ignored: 'It is ignored until a limit is passed or somebody reopens it.',
  resolved: 'Somebody marked the cause as fixed.',
}

const colors: Record<Status, string> = {
  open: 'accent',
  regressed: 'red',
  ignored: 'gray',
  resolved: 'green',
}

/** The status of a group, with its meaning in the tooltip. */
export function GroupStatus({ status }: { status: Status }) {
  return (
    <Badge color={colors[status]} title={meanings[status]}>
      {status}
    </Badge>
  )
}
