import type { InputOf } from 'redrive/api'
import type { BulkActionName, BulkRequest } from './bulk-request.ts'

/** What the reader has entered in the drawer. Empty strings: nothing. */
export interface PlanForm {
  reason: string
  /** Letters per second. */
  rate: number | ''
  concurrency: number | ''
  canary: boolean
  canaryFirst: number
  canaryFactor: number
  /** Percent of letters that may fail. */
  canaryLimit: number
  /** HH:MM */
  windowFrom: string
  windowTo: string
  timeZone: string
  /** Times as the field of the browser has them: without a zone. */
  startAt: string
  dueAt: string
  includeSuperseded: boolean
  mailbox: string
  priority: '' | 'critical' | 'high' | 'medium' | 'low'
  addTags: string[]
  removeTags: string[]
  patch: string
  transform: string
}

export const emptyForm: PlanForm = {
  reason: '',
  rate: '',
  concurrency: '',
  canary: false,
  canaryFirst: 1,
  canaryFactor: 10,
  canaryLimit: 5,
  windowFrom: '',
  windowTo: '',
  timeZone: 'UTC',
  startAt: '',
  dueAt: '',
  includeSuperseded: false,
  mailbox: '',
  priority: '',
  addTags: [],
  removeTags: [],
  patch: '',
  transform: '',
}

type PlanInput = InputOf<'planBulkAction'>
type UndoInput = InputOf<'planBulkUndo'>
export type PlanCall =
  | { name: 'planBulkAction'; input: PlanInput }
  | { name: 'planBulkUndo'; input: UndoInput }

/** The call that plans what the form says. */
export function planCall(request: BulkRequest, form: PlanForm): PlanCall {
  const limits = limitsOf(form)
  if (request.action === 'undo')
    return { name: 'planBulkUndo', input: { id: request.undoes, ...limits } }
  return {
    name: 'planBulkAction',
    input: {
      action: request.action,
      filter: request.filter,
      ...limits,
      ...inputOf(request.action, form),
    },
  }
}

/** A time window needs both of its times. */
export function isHalfWindow({ windowFrom, windowTo }: PlanForm): boolean {
  return (windowFrom === '') !== (windowTo === '')
}

function limitsOf(form: PlanForm): Omit<UndoInput, 'id'> {
  const reason = form.reason.trim()
  const hasWindow = form.windowFrom !== '' && form.windowTo !== ''
  return {
    ...(reason === '' ? {} : { reason }),
    ...(form.rate === '' ? {} : { rate: form.rate }),
    ...(form.concurrency === '' ? {} : { concurrency: form.concurrency }),
    ...(form.startAt === '' ? {} : { startAt: toTimestamp(form.startAt) }),
    ...(hasWindow
      ? { window: { from: form.windowFrom, to: form.windowTo, timeZone: form.timeZone } }
      : {}),
    ...(form.canary
      ? {
          canary: {
            first: form.canaryFirst,
            factor: form.canaryFactor,
            maxFailureShare: form.canaryLimit / 100,
          },
        }
      : {}),
  }
}

/** The values that this action takes. The server rejects those of others. */
function inputOf(action: BulkActionName, form: PlanForm): Partial<PlanInput> {
  const superseded = form.includeSuperseded ? { includeSuperseded: true } : {}
  switch (action) {
    case 'retry':
      return { ...superseded, ...(form.dueAt === '' ? {} : { at: toTimestamp(form.dueAt) }) }
    case 'replay':
      return { ...superseded, ...(form.mailbox.trim() === '' ? {} : { to: form.mailbox.trim() }) }
    case 'priority':
      return form.priority === '' ? {} : { priority: form.priority }
    case 'tag':
      return {
        ...(form.addTags.length > 0 ? { addTags: form.addTags } : {}),
        ...(form.removeTags.length > 0 ? { removeTags: form.removeTags } : {}),
      }
    case 'edit':
      return form.transform.trim() === ''
        ? { patch: JSON.parse(form.patch) as NonNullable<PlanInput['patch']> }
        : { transform: form.transform.trim() }
    default:
      return {}
  }
}

/** What is missing before a plan can be made. Undefined: nothing. */
export function whyNotReady(action: BulkActionName, form: PlanForm): string | undefined {
  if (action === 'priority' && form.priority === '') return 'Choose the new priority.'
  if (action === 'tag' && form.addTags.length + form.removeTags.length === 0)
    return 'Enter a tag to add or to remove.'
  if (action === 'edit' && form.transform.trim() === '') return patchProblem(form.patch)
  return undefined
}

/** Why a string is not a JSON Patch. Undefined: it is one, as far as the browser can tell. */
export function patchProblem(text: string): string | undefined {
  if (text.trim() === '') return 'Enter a JSON Patch.'
  try {
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value)) return 'A JSON Patch is an array of operations.'
    return value.length === 0 ? 'The JSON Patch has no operation.' : undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The field of the browser has local time. */
function toTimestamp(value: string): string {
  return new Date(value).toISOString()
}
