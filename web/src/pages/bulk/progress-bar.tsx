import type { BulkActionView } from 'redrive/api'
import { formatAmount, formatCount } from '../../format/number.ts'
import { countDone } from '../../format/progress.ts'
import classes from './bulk.module.css'

const parts = ['succeeded', 'indeterminate', 'skipped', 'failed', 'waiting'] as const

const words: Record<(typeof parts)[number], string> = {
  succeeded: 'succeeded',
  indeterminate: 'published, perhaps twice',
  skipped: 'skipped',
  failed: 'failed',
  waiting: 'running',
}

/** The outcomes of a bulk action as parts of a bar. */
export function ProgressBar({ action }: { action: Pick<BulkActionView, 'progress' | 'count'> }) {
  const { progress, count } = action
  const done = countDone(progress)
  return (
    <div
      className={classes.bar}
      role="progressbar"
      aria-label={`${formatCount(done)} of ${formatAmount(count, 'letter')} done`}
      aria-valuenow={done}
      aria-valuemin={0}
      aria-valuemax={count}
      title={progressText(progress)}
    >
      {parts
        .filter((part) => progress[part] > 0)
        .map((part) => (
          <span
            key={part}
            data-outcome={part}
            style={{ width: `${(100 * progress[part]) / Math.max(1, count)}%` }}
          />
        ))}
    </div>
  )
}

/** `2,310 succeeded, 12 failed` */
export function progressText(progress: BulkActionView['progress']): string {
  const known = parts
    .filter((part) => progress[part] > 0)
    .map((part) => `${formatCount(progress[part])} ${words[part]}`)
  return known.length === 0 ? 'Nothing done yet' : known.join(', ')
}
