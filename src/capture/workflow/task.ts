import { describeValue } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter, Json, Payload, Source } from '../../letter/letter.ts'
import { decodePayload, encodePayload } from '../../letter/payload.ts'
import { read } from '../../letter/reading.ts'
import { checkContext, jsonOf, type CaptureContext } from '../context.ts'
import type { GuardedRun } from '../operation.ts'

/** One run of a workflow: the task, its targets, the adapter and the user. */
export interface WorkflowTask<T = unknown> extends Omit<
  CaptureContext,
  'id' | 'task' | 'contentType'
> {
  /**
   * Id of the task. While an open letter has it, another failure adds an occurrence to that letter,
   * unless a `dedupeKey` is given.
   */
  id: string
  task: T
  /**
   * Targets of the task, such as repositories. After a partial failure only the failed targets run
   * again.
   */
  targets?: string[]
  /** The engine that runs it. */
  adapter?: string
  /** The user that runs the task, and their permissions. */
  user?: Json
}

/**
 * One run, as the workflow sees it: `attempt` is 0 and `letter` is absent in the first one. The
 * idempotency key is the same in all runs, also when fewer targets are left; for one target use the
 * key and the name of the target.
 */
export type WorkflowRun = Omit<GuardedRun, 'input'>

/** The workflow itself. In a retry the task is a copy with the targets that are left. */
export type WorkflowFn<T = unknown, R = unknown> = (
  task: WorkflowTask<T>,
  run: WorkflowRun,
) => Promise<R> | R

/**
 * A copy of a task as its letter would store it. Later changes to the caller's objects do not reach
 * it.
 */
export interface TaskCopy {
  source: Source & { kind: 'workflow' }
  payload: Payload
  context: CaptureContext
}

/** Checks a task and copies it, before it runs. */
export function copyTask(name: string, given: WorkflowTask): TaskCopy {
  checkTask(given)
  const { id, task, targets, adapter, user, ...context } = given
  checkContext(context, 'workflow task', ['targets', 'adapter', 'user'])
  return {
    source: {
      kind: 'workflow',
      name,
      taskId: id,
      targets: targets ? [...targets] : [],
      ...(adapter === undefined ? {} : { adapter }),
      ...(user === undefined ? {} : { context: jsonOf(user) }),
    },
    payload: encodePayload({
      task,
      ...(targets === undefined ? {} : { targets }),
      ...(adapter === undefined ? {} : { adapter }),
      ...(user === undefined ? {} : { user }),
    }),
    context: copyContext(context),
  }
}

function checkTask(given: WorkflowTask): void {
  const reject = (what: string): never => {
    throw new RedriveError('INVALID_INPUT', what)
  }
  if (typeof given !== 'object' || given === null)
    reject(`a workflow task must be an object, got ${describeValue(given)}`)
  if (typeof given.id !== 'string' || given.id === '')
    reject(`id of a workflow task must be a non-empty string, got ${describeValue(given.id)}`)
  if (given.targets !== undefined && stringsOf(given.targets) === undefined)
    reject(
      `targets of a workflow task must be an array of strings, got ${describeValue(given.targets)}`,
    )
  if (given.adapter !== undefined && typeof given.adapter !== 'string')
    reject(`adapter of a workflow task must be a string, got ${describeValue(given.adapter)}`)
}

/** Copies the context, except for the database client. */
function copyContext({ client, ...fields }: CaptureContext): CaptureContext {
  const copied = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, typeof value === 'object' ? jsonOf(value) : value])
  return { ...Object.fromEntries(copied), ...(client === undefined ? {} : { client }) }
}

/** The payload with only these remaining targets. A lossy payload stays marked as lossy. */
export function withTargets(payload: Payload, targets: readonly string[]): Payload {
  const { lossy } = payload
  const narrowed = { ...(decodePayload(payload) as object), targets }
  return { ...encodePayload(narrowed), ...(lossy ? { lossy } : {}) }
}

/**
 * The input of the next run with only these remaining targets. Decoded again, since a run may
 * change its input.
 */
export function remainingOf(letter: DeadLetter, targets: readonly string[]): object {
  const { task, adapter, user } = taskOf(letter, decodePayload(letter.payload))
  return {
    task,
    targets,
    ...(adapter === undefined ? {} : { adapter }),
    ...(user === undefined ? {} : { user }),
  }
}

/**
 * The task of a letter. Values missing in its payload, for example after an edit, come from its
 * source.
 */
export function taskOf(letter: DeadLetter, input: unknown): WorkflowTask {
  const source = letter.source.kind === 'workflow' ? letter.source : undefined
  const isEncodedTask = typeof input === 'object' && input !== null && 'task' in input
  const fields = isEncodedTask ? input : { task: input }
  const adapter = read(fields, 'adapter') ?? source?.adapter
  const targets =
    stringsOf(read(fields, 'targets')) ?? (source?.targets.length ? source.targets : null)
  const user = (read(fields, 'user') ?? source?.context) as Json | undefined
  return {
    id: source?.taskId ?? letter.id,
    task: fields.task,
    ...(targets ? { targets: [...targets] } : {}),
    ...(typeof adapter === 'string' ? { adapter } : {}),
    ...(user === undefined ? {} : { user }),
    metadata: { ...letter.metadata },
  }
}

/** The targets of the next retry of a letter; none if its payload cannot be read. */
export function targetsOf(letter: DeadLetter): string[] {
  try {
    return stringsOf(read(decodePayload(letter.payload), 'targets')) ?? []
  } catch {
    return []
  }
}

function stringsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items: unknown[] = value
  return items.every((item) => typeof item === 'string') ? [...items] : undefined
}
