import type { BulkActionView } from 'redrive/api'
import { StateIcon, type State } from '../../ui/state.tsx'
import classes from './bulk.module.css'
import { awaitsApproval, useIsExpired } from './bulk-controls.tsx'

/** The shapes and colours are those of letters in like states. */
const icons: Record<BulkActionView['state'], State> = {
  planned: 'pending',
  running: 'retrying',
  paused: 'parked',
  stopped: 'exhausted',
  finished: 'resolved',
  cancelled: 'archived',
}

const meanings: Record<BulkActionView['state'], string> = {
  planned: 'The letters are fixed. Nothing has changed yet.',
  running: 'Workers on the store run it.',
  paused: 'A person has paused it. It can be resumed.',
  stopped: 'Too many letters failed. It can be resumed.',
  finished: 'All letters have an outcome.',
  cancelled: 'A person has ended it. What was done stays done.',
}

/** The state of a bulk action as a shape and words. */
export function BulkStateBadge({ action }: { action: BulkActionView }) {
  const isExpired = useIsExpired(action)
  const text = isExpired ? 'expired' : awaitsApproval(action) ? 'awaits approval' : action.state
  return (
    <span
      className={classes.outcome}
      title={isExpired ? 'Nobody ran it in time.' : meanings[action.state]}
    >
      <StateIcon state={isExpired ? 'archived' : icons[action.state]} />
      {text}
    </span>
  )
}
