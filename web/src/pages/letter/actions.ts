import { isLegal, type Move, type LetterView, type Permission } from 'redrive/api'
import { formatAmount } from '../../format/number.ts'

export type ActionName =
  | 'retry'
  | 'restore'
  | 'review'
  | 'edit'
  | 'replay'
  | 'park'
  | 'resolve'
  | 'undo'
  | 'archive'
  | 'remove'

/** An action on a letter as the page offers it. */
export interface LetterAction {
  name: ActionName
  label: string
  /** What will happen. */
  effect: string
  keys?: string
}

interface Row {
  move: Move
  permission: Permission
  label: string
  keys?: string
  effect: (letter: Facts) => string
  /** Further condition. Default: none. */
  when?: (letter: Facts) => boolean
}

type Facts = Pick<
  LetterView,
  'state' | 'maxRetries' | 'source' | 'archivedFrom' | 'payload' | 'hidden'
>

const table: Record<ActionName, Row> = {
  retry: {
    move: 'retry',
    permission: 'letter:retry',
    label: 'Retry now',
    keys: 'r',
    effect: ({ state, maxRetries }) =>
      state === 'pending'
        ? 'A worker runs its handler as soon as it can, instead of at the planned time.'
        : `A worker runs its handler as soon as it can. It gets ${formatAmount(maxRetries, 'new retry', 'new retries')}.`,
  },
  restore: {
    move: 'restore',
    permission: 'letter:archive',
    label: 'Restore',
    effect: ({ archivedFrom = 'pending' }) => `It is ${archivedFrom} again, as before.`,
  },
  review: {
    move: 'review',
    permission: 'letter:retry',
    label: 'Review…',
    effect: () => 'Decide: requeue it, mark it as resolved, or discard it.',
    when: ({ state }) => state === 'parked',
  },
  edit: {
    move: 'edit',
    permission: 'payload:edit',
    label: 'Edit…',
    keys: 'e',
    effect: () => 'Change its payload. The version as captured stays stored.',
    when: ({ hidden, payload }) => !hidden && payload.erased === undefined,
  },
  replay: {
    move: 'replay',
    permission: 'letter:replay',
    label: 'Replay…',
    effect: () => 'Its message is published again, and the letter is resolved.',
  },
  park: {
    move: 'park',
    permission: 'letter:retry',
    label: 'Park…',
    keys: 'p',
    effect: () => 'It is set aside: no retries until a person decides.',
    when: ({ state }) => state !== 'retrying',
  },
  resolve: {
    move: 'resolve',
    permission: 'letter:retry',
    label: 'Resolve',
    effect: () => 'It counts as done, without another run.',
    when: ({ state }) => state !== 'retrying',
  },
  undo: {
    move: 'edit',
    permission: 'payload:edit',
    label: 'Undo edit',
    effect: () => 'The payload is as it was before its newest edit.',
    when: ({ payload }) => payload.version > 1,
  },
  archive: {
    move: 'archive',
    permission: 'letter:archive',
    label: 'Archive',
    keys: 'a',
    effect: () => 'It is hidden from lists, and no longer retried. You can restore it.',
  },
  remove: {
    move: 'remove',
    permission: 'letter:remove',
    label: 'Remove…',
    effect: () => 'It is deleted with its payload and history. This cannot be undone.',
  },
}

/** The actions that the state of a letter and the permissions of the reader allow, in order. */
export function actionsOf(letter: Facts, can: (permission: Permission) => boolean): LetterAction[] {
  return (Object.keys(table) as ActionName[]).flatMap((name) => {
    const { move, permission, label, keys, effect, when } = table[name]
    if (!isLegal(move, letter.state) || !can(permission) || when?.(letter) === false) return []
    return [{ name, label, effect: effect(letter), ...(keys === undefined ? {} : { keys }) }]
  })
}

/** The action that most readers want: it has the button with the accent. */
export function primaryOf(actions: readonly LetterAction[]): LetterAction | undefined {
  return actions.find(({ name }) => name === 'retry' || name === 'restore')
}
