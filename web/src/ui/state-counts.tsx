import { formatCount } from '../format/number.ts'
import classes from './state-counts.module.css'
import { StateIcon, stateNames, type State } from './state.tsx'

/** Counts by state, as shapes and numbers. States without letters are left out. */
export function StateCounts({ states }: { states: Partial<Record<State, number>> }) {
  const present = stateNames.filter((state) => (states[state] ?? 0) > 0)
  if (present.length === 0) return <span className="dim">none</span>
  return (
    <span className={classes.counts}>
      {present.map((state) => (
        <span
          key={state}
          className={classes.count}
          title={`${formatCount(states[state]!)} ${state}`}
        >
          <StateIcon state={state} />
          {formatCount(states[state]!)}
          <span className="sr-only">{state}</span>
        </span>
      ))}
    </span>
  )
}
