import classes from './state.module.css'

export const stateNames = [
  'pending',
  'retrying',
  'resolved',
  'exhausted',
  'parked',
  'archived',
] as const
export type State = (typeof stateNames)[number]

/** The states of letters that are not done. */
export const openStates: State[] = ['pending', 'retrying', 'exhausted', 'parked']

/** What a state means, for tooltips. */
const stateMeanings: Record<State, string> = {
  pending: 'Waits for its next retry.',
  retrying: 'Its handler runs now.',
  resolved: 'Done: it succeeded, or a person marked it as resolved.',
  exhausted: 'All retries failed. A person has to decide.',
  parked: 'Set aside for a person: retrying by itself would not help.',
  archived: 'Hidden from lists.',
}

/** The state of a letter as a shape, a colour and a word. */
export function StateBadge({ state }: { state: State }) {
  return (
    <span className={classes.badge} data-state={state} title={stateMeanings[state]}>
      <StateIcon state={state} />
      {state}
    </span>
  )
}

/** Shapes differ without colour: ring, half disc, tick, cross, bars, box. */
export function StateIcon({ state, size = 12 }: { state: State; size?: number }) {
  return (
    <svg
      className={classes.icon}
      data-state={state}
      width={size}
      height={size}
      viewBox="0 0 12 12"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
    >
      {shapes[state]}
    </svg>
  )
}

const shapes: Record<State, React.ReactNode> = {
  pending: <circle cx="6" cy="6" r="4.4" />,
  retrying: (
    <>
      <circle cx="6" cy="6" r="4.4" />
      <path d="M6 1.6a4.4 4.4 0 0 1 0 8.8z" fill="currentColor" stroke="none" />
    </>
  ),
  resolved: <path d="m1.5 6.5 3 3 6-7" />,
  exhausted: <path d="m2 2 8 8m0-8-8 8" />,
  parked: <path d="M3.5 1.5v9m5-9v9" strokeWidth="2.4" />,
  archived: <rect x="1.5" y="2" width="9" height="8" rx="1" fill="currentColor" />,
}
