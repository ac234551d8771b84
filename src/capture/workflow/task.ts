import { RedriveError } from '../../errors.ts'
import type { DeadLetter, Json, Payload, Source } from '../../letter/letter.ts'
import { decodePayload, encodePayload } from '../../letter/payload.ts'
import { read } from '../../letter/reading.ts'
import { checkContext, jsonOf, type CaptureContext } from '../context.ts'
import type { GuardedRun } from '../operation.ts'

/** One run of a workflow: what is to be done, to which targets, by which adapter, and for whom. */
export interface WorkflowTask<T = unknown> extends Omit<
  CaptureContext,
  'id' | 'task' | 'contentType'
> {
  /** Names the task. While an open letter has it, failing again adds an occurrence to that letter, unless a `dedupeKey` is given. */
  id: string
  task: T
  /** What it works on, one by one: repositories, accounts. After a partial failure only those that failed run again. */
  targets?: string[]
  /** The engine that runs it. */
  adapter?: string
  /** Who runs it, and with which rights. */
  user?: Json
}

/**
 * One run, as the workflow sees it: `attempt` is 0 and `letter` is absent in the first one. The idempotency key is the same
 * in all runs, also when fewer targets are left; for one target use the key and the name of the target.
 */
export type WorkflowRun = Omit<GuardedRun, 'input'>

/** The workflow itself. In a retry the task is a copy with the targets that are left. */
export type WorkflowFn<T = unknown, R = unknown> = (
  task: WorkflowTask<T>,
  run: WorkflowRun,
) => Promise<R> | R

/** A task as a letter would keep it, of its own: whatever becomes of the caller's objects does not reach it. */
export interface HeldTask {
  source: Source & { kind: 'workflow' }
  payload: Payload
  context: CaptureContext
}

/** Checks a task and copies it, before it runs. */
export function holdTask(name: string, given: WorkflowTask): HeldTask {
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
    context: copyOf(context),
  }
}

function checkTask(given: WorkflowTask): void {
  const bad = (what: string): never => {
    throw new RedriveError('INVALID_INPUT', what)
  }
  if (typeof given !== 'object' || given === null) bad('a workflow task must be an object')
  if (typeof given.id !== 'string' || given.id === '')
    bad('the id of a workflow task must be a text that is not empty')
  if (given.targets !== undefined && textsOf(given.targets) === undefined)
    bad('the targets of a workflow task must be a list of texts')
  if (given.adapter !== undefined && typeof given.adapter !== 'string')
    bad('the adapter of a workflow task must be a text')
}

/** A client of a database is what it is; all else is data. */
function copyOf({ client, ...said }: CaptureContext): CaptureContext {
  const copied = Object.entries(said)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, typeof value === 'object' ? jsonOf(value) : value])
  return { ...Object.fromEntries(copied), ...(client === undefined ? {} : { client }) }
}

/** The payload with only these targets left to run. What could not be kept of the task stays marked as lossy. */
export function withTargets(payload: Payload, targets: readonly string[]): Payload {
  const { lossy } = payload
  const narrowed = { ...(decodePayload(payload) as object), targets }
  return { ...encodePayload(narrowed), ...(lossy ? { lossy } : {}) }
}

/** The input of a next run with only these targets left. Made from the bytes, since a run may change the input it got. */
export function remainingOf(letter: DeadLetter, targets: readonly string[]): object {
  const { task, adapter, user } = taskOf(letter, decodePayload(letter.payload))
  return {
    task,
    targets,
    ...(adapter === undefined ? {} : { adapter }),
    ...(user === undefined ? {} : { user }),
  }
}

/** The task that a letter keeps. What its payload does not say, for example after an edit, is taken from its source. */
export function taskOf(letter: DeadLetter, input: unknown): WorkflowTask {
  const source = letter.source.kind === 'workflow' ? letter.source : undefined
  const ours = typeof input === 'object' && input !== null && 'task' in input
  const said = ours ? input : { task: input }
  const adapter = read(said, 'adapter') ?? source?.adapter
  const targets = textsOf(read(said, 'targets')) ?? (source?.targets.length ? source.targets : null)
  const user = (read(said, 'user') ?? source?.context) as Json | undefined
  return {
    id: source?.taskId ?? letter.id,
    task: said.task,
    ...(targets ? { targets: [...targets] } : {}),
    ...(typeof adapter === 'string' ? { adapter } : {}),
    ...(user === undefined ? {} : { user }),
    metadata: { ...letter.metadata },
  }
}

/** The targets that the letter runs at its next retry; none when it cannot be read. */
export function targetsOf(letter: DeadLetter): string[] {
  try {
    return textsOf(read(decodePayload(letter.payload), 'targets')) ?? []
  } catch {
    return []
  }
}

function textsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items: unknown[] = value
  return items.every((item) => typeof item === 'string') ? [...items] : undefined
}
