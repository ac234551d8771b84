import type { JsonPatch } from './json-patch.ts'
import type { DeadLetter, HistoryEntry, Priority, State } from './letter.ts'
import type { PayloadDiff } from './payload-diff.ts'
import type { LetterFilter } from './query.ts'
import type { Timestamp } from './time.ts'

/** Actions on the letters that match a filter. */
export const filterActionNames = [
  'retry',
  'replay',
  'resolve',
  'park',
  'archive',
  'restore',
  'remove',
  'edit',
  'tag',
  'priority',
] as const
export type FilterActionName = (typeof filterActionNames)[number]

/** `undo` acts on the letters of an edit. */
export const bulkActionNames = [...filterActionNames, 'undo'] as const
export type BulkActionName = (typeof bulkActionNames)[number]

/** `stopped`: by its canary. A stopped or paused action can be resumed. */
export const bulkStates = [
  'planned',
  'running',
  'paused',
  'stopped',
  'finished',
  'cancelled',
] as const
export type BulkState = (typeof bulkStates)[number]

/** A bulk action: one action on a fixed set of letters, planned first and then run. */
export interface BulkAction {
  id: string
  action: BulkActionName
  /** Undo: the filter of the edit. */
  filter: LetterFilter
  input: BulkInput
  limits: BulkLimits
  state: BulkState
  by: string
  reason?: string
  /** Number of letters in the plan. */
  count: number
  /** Number of these letters by state and by queue. */
  states: { [S in State]?: number }
  queues: { [queue: string]: number }
  /** Some of these letters. */
  sample: SampleLetter[]
  /** Edit and undo: what would change in the letters of the sample. */
  preview?: EditPreview[]
  ineligible: Ineligible
  progress: BulkProgress
  approval?: Approval
  plannedAt: Timestamp
  /** The plan cannot be run after this. */
  expiresAt: Timestamp
  startedAt?: Timestamp
  endedAt?: Timestamp
  /** Why the action stopped. */
  stopReason?: string
  /** Why the action makes no progress at present. */
  problem?: string
}

export interface SampleLetter {
  id: string
  queue: string
  state: State
  /** Name and message of the last failure. */
  failure: string
}

/** What an edit would change in a letter, or why it cannot. */
export interface EditPreview {
  id: string
  diff?: PayloadDiff
  error?: string
}

/** Letters that match the filter but cannot be part of the plan. */
export interface Ineligible {
  count: number
  /** Number of letters by reason. */
  reasons: { [reason: string]: number }
  /** Some of these letters. */
  sample: { id: string; reason: string }[]
}

/** Numbers of letters of the plan, by outcome. */
export interface BulkProgress {
  /** Not acted on yet. */
  pending: number
  /** Acted on, with an outcome that is not known yet. */
  waiting: number
  succeeded: number
  failed: number
  skipped: number
  /** Published, possibly twice. */
  indeterminate: number
}

export type Outcome = keyof BulkProgress

/** What a bulk action did to one letter. */
export interface BulkResult {
  id: string
  outcome: Outcome
  /** Runs of the handler: more than 1 if a worker died during the first one. Only for retry. */
  runs?: number
  /** Why the letter failed or was skipped. */
  error?: string
}

export interface Approval {
  /** The plan needs a second person because it has more letters than this. */
  above: number
  by?: string
  at?: Timestamp
}

/** How fast and when an action runs. */
export interface BulkLimits {
  /** Letters per second. Default: no limit. */
  rate?: number
  /**
   * Letters that may wait for their outcome at the same time. New failures wait behind at most so
   * many letters of the action.
   */
  concurrency: number
  /** Not before this time. */
  startAt?: Timestamp
  /** Only during this time of day. */
  window?: TimeWindow
  canary?: Canary
}

/** A part of each day. It may contain midnight: from 22:00 to 06:00. */
export interface TimeWindow {
  /** HH:MM */
  from: string
  /** HH:MM */
  to: string
  /** An IANA time zone. Default: UTC. */
  timeZone?: string
}

/** Acts on few letters first, and stops the action when too many of them fail. */
export interface Canary {
  /** Letters of the first step. */
  first: number
  /** Each step has so many times the letters of the one before. */
  factor: number
  /** The share of failed letters that stops the action, from 50 outcomes on. */
  maxFailureShare: number
}

/** Makes the new payload of a letter for a bulk edit. It must not change what it gets. */
export type Transform = (payload: unknown, letter: DeadLetter) => unknown

/** What an action needs besides letters. */
export interface BulkInput {
  /** Retry: when the letters become due. Default: at once. */
  at?: Timestamp
  /** Retry and replay: also letters of a lane in which a newer letter has succeeded. */
  includeSuperseded?: boolean
  /** Replay: the name of another mailbox than the source. */
  to?: string
  /** Priority: the new priority. */
  priority?: Priority
  /** Tag: tags to add and to remove. */
  addTags?: string[]
  removeTags?: string[]
  /** Edit: a JSON Patch (RFC 6902) of JSON payloads. */
  patch?: JsonPatch
  /** Edit: the name of a function of the option `transforms`. */
  transform?: string
  /** Undo: the id of the edit. */
  undoes?: string
}

/** A letter of a plan, as it is stored. Without an outcome it was not acted on yet. */
export interface PlannedLetter {
  id: string
  /** Its version in the plan. A letter with another version is not acted on. */
  version: number
  /** Its number of retries in the plan, if it is not 0 and the action does not reset it. */
  retries?: number
  /** Undo: the version of the letter that the edit changed. */
  editedVersion?: number
  outcome?: Exclude<Outcome, 'pending'>
  runs?: number
  error?: string
  /** How often publishing the letter was begun. After a crash, nobody knows whether it was. */
  sends?: number
}

export const noProgress: BulkProgress = {
  pending: 0,
  waiting: 0,
  succeeded: 0,
  failed: 0,
  skipped: 0,
  indeterminate: 0,
}

export const outcomes = Object.keys(noProgress) as Outcome[]

export function countOutcomes(letters: readonly PlannedLetter[]): BulkProgress {
  const progress = { ...noProgress }
  for (const { outcome = 'pending' } of letters) progress[outcome] += 1
  return progress
}

export function addProgress(one: BulkProgress, other: BulkProgress): BulkProgress {
  return {
    pending: one.pending + other.pending,
    waiting: one.waiting + other.waiting,
    succeeded: one.succeeded + other.succeeded,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
    indeterminate: one.indeterminate + other.indeterminate,
  }
}

/** The beginning of the note that each change of an action has, so that it can be recognized. */
function markOf(actionId: string): string {
  return `bulk action ${actionId}`
}

/** Whether the action has changed this letter. A note of a person does not count. */
export function isMarkedBy(actionId: string, { history }: Pick<DeadLetter, 'history'>): boolean {
  return history.some((entry) => isMark(actionId, entry))
}

/** Whether the action wrote this entry of the history. */
export function isMark(actionId: string, { action, note }: HistoryEntry): boolean {
  return action !== 'note' && note?.startsWith(markOf(actionId)) === true
}

/** The note of the changes that an action makes. */
export function noteOf({
  id,
  reason,
  input,
}: Pick<BulkAction, 'id' | 'reason'> & Partial<Pick<BulkAction, 'input'>>): string {
  const mark = input?.undoes === undefined ? markOf(id) : `${markOf(id)} undoes ${input.undoes}`
  return reason === undefined ? mark : `${mark}: ${reason}`
}

/** Whether an action that undoes an edit wrote this note. */
export function isUndoNote(note: string): boolean {
  return /^bulk action \S+ undoes /.test(note)
}

/** An action that ends letters or changes their content needs a name and a reason. */
export function isDestructive(action: BulkActionName): boolean {
  return ['remove', 'resolve', 'edit', 'undo'].includes(action)
}
