import type { BulkActionView, filterActionNames, FilterInput } from 'redrive/api'
import { formatAmount } from '../../format/number.ts'

export type FilterAction = (typeof filterActionNames)[number]
export type BulkActionName = BulkActionView['action']

/** What the drawer plans: an action on all letters of a filter, or the undo of an edit. */
export type BulkRequest =
  | { action: FilterAction; filter: FilterInput }
  | { action: 'undo'; undoes: string; filter: FilterInput }

/** What each action means, in one line. */
export const actionMeanings: Record<BulkActionName, string> = {
  retry: 'Makes the letters due, so that workers run their handlers again.',
  replay: 'Publishes the messages to their source again and resolves the letters.',
  resolve: 'Marks the letters as done without running them.',
  park: 'Sets the letters aside until a person decides. They are not retried by themselves.',
  archive: 'Hides the letters from lists. They can be restored.',
  restore: 'Brings archived letters back into the state that they had.',
  remove: 'Deletes the letters and their payloads. This cannot be undone.',
  edit: 'Changes the payloads. The earlier versions are kept, and the edit can be undone.',
  undo: 'Restores the payloads that the edit has changed.',
  tag: 'Adds or removes tags.',
  priority: 'Changes the order in which due letters run.',
}

const verbs: Record<BulkActionName, string> = {
  retry: 'Retry',
  replay: 'Replay',
  resolve: 'Resolve',
  park: 'Park',
  archive: 'Archive',
  restore: 'Restore',
  remove: 'Remove',
  edit: 'Edit',
  undo: 'Undo the edit of',
  tag: 'Tag',
  priority: 'Change the priority of',
}

/** `Retry`, `Change the priority of` */
export function actionVerb(action: BulkActionName): string {
  return verbs[action]
}

/** `Retry 3,204 letters` */
export function actionTitle(action: BulkActionName, count: number): string {
  return `${verbs[action]} ${formatAmount(count, 'letter')}`
}

/** Actions that end letters or change their content: the server asks for a reason. */
export function needsReason(action: BulkActionName): boolean {
  return ['remove', 'resolve', 'edit', 'undo'].includes(action)
}

/** Actions that need a value before their effect can be planned. */
export function needsInput(action: BulkActionName): boolean {
  return ['edit', 'tag', 'priority'].includes(action)
}
