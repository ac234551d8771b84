import { RedriveError } from '../errors.ts'
import type { PlanOptions } from '../bulk/plan-options.ts'
import type { FilterActionName } from '../letter/bulk-action.ts'
import type { DeadLetter, State } from '../letter/letter.ts'
import { moveTable } from '../letter/move-table.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { QueueOptions } from '../options/options.ts'
import { askPerson, canAsk, isYes } from './ask.ts'
import type { Until } from './bulk-progress.ts'
import type { FilterOptions } from './filter.ts'
import type { ConfigOptions, GlobalOptions, OpenedQueue } from './open.ts'
import type { QueueAccess } from './queue-access.ts'

/** How letters chosen by a filter are acted on. */
export interface FilterAction {
  name: FilterActionName
  options?: PlanOptions
  /** Default: until all letters were acted on. */
  until?: Until
}

/** An action on letters, chosen by id or by filter. */
export interface LetterAction {
  name: 'retry' | 'replay' | 'resolve' | 'review' | 'park' | 'archive' | 'restore' | 'remove'
  /** The command in examples, if the name alone is not enough. */
  usage?: string
  description: string
  /** The outcome for a letter, such as "archived". */
  outcome: string | ((letter: Pick<DeadLetter, 'state' | 'reason'>) => string)
  /** Options of the queue that the action needs, from the configuration. */
  queueOptions?: (options: ConfigOptions) => Promise<QueueOptions>
  run: (dlq: QueueAccess, id: string, by: string) => Promise<DeadLetter>
  /** The bulk action on letters chosen by a filter. Absent: they are acted on one by one. */
  bulk?: () => FilterAction
  /** A note that is printed once at the end. */
  finalNote?: (opened: OpenedQueue, queues: ReadonlySet<string>) => Promise<string | undefined>
}

export interface ActionOptions extends GlobalOptions, FilterOptions {
  all?: boolean
  yes?: boolean
  by?: string
}

/** The states of the filter that allow the action. */
export function legalStates(
  { name }: Pick<LetterAction, 'name'>,
  { state }: LetterFilter,
): State[] {
  const legal: readonly State[] = moveTable[name].from
  const selected = legal.filter((one) => state === undefined || [state].flat().includes(one))
  if (selected.length > 0) return selected
  throw new RedriveError(
    'ILLEGAL_MOVE',
    `${name} is possible only in these states: ${legal.join(', ')}; change --state`,
  )
}

export async function askConfirmation({ name }: { name: string }, what: string): Promise<boolean> {
  if (!canAsk())
    throw new RedriveError('INVALID_INPUT', `${name} would act on ${what}: add --yes to confirm`)
  return isYes(await askPerson(`${name} ${what}? [y/N] `))
}

export function describeOutcome(
  { outcome }: LetterAction,
  letter: Pick<DeadLetter, 'state' | 'reason'>,
): string {
  return typeof outcome === 'string' ? outcome : outcome(letter)
}
