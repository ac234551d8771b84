import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import type { Endpoint } from '../api/endpoint.ts'
import type { BulkActionView } from '../api/schemas/bulk.ts'
import type { GroupDetailView } from '../api/schemas/group.ts'
import type { LetterView } from '../api/schemas/letter.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import { hideBulkAction, viewBulkAction } from './bulk-view.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { ifMatchFailed } from './conditions.ts'
import { hideGroup, viewGroupDetail } from './group-view.ts'
import type { Context } from './handlers/handler.ts'
import type { Idempotency, KeptResponse } from './idempotency.ts'
import { toProblem } from './problems.ts'
import { hideLetter, viewLetter } from './view.ts'
import type { Viewer } from './viewer.ts'

interface Result {
  status: number
  body: unknown
}

interface OnceOptions {
  idempotency: Idempotency
  endpoint: Endpoint
  request: FastifyRequest
  context: Context
}

/**
 * Runs a request once for its Idempotency-Key, and returns the first response from then on. Errors
 * that may go away are not kept.
 */
export async function once(
  { idempotency, endpoint, request, context }: OnceOptions,
  act: () => Promise<Result>,
): Promise<Result> {
  const key = request.headers['idempotency-key']
  if (key === undefined || request.method === 'GET') return act()
  if (endpoint.permission === 'public')
    throw new RedriveError(
      'INVALID_INPUT',
      'a request that needs no token has no Idempotency-Key: remove it',
    )
  const { method, url, headers, body } = request
  const begun = await idempotency.begin({
    key: String(key),
    isRepeatable: endpoint.repeatable ?? false,
    caller: context.caller,
    parts: [
      method,
      url,
      headers['if-match'] ?? '',
      headers['content-type'] ?? '',
      ...Object.entries(headers)
        .filter(([name]) => name.startsWith('ce-'))
        .flatMap(([name, value]) => [name, String(value)]),
      Buffer.isBuffer(body) ? body : '',
    ],
  })
  if (begun.kind === 'done') return show(begun.response, context)
  const { run } = begun
  context.newId = run.newId
  let result: Result
  try {
    result = await act()
  } catch (error) {
    const problem = toProblem(ifMatchFailed(error, headers))
    if (problem.retry || problem.status >= 500) await run.forget()
    else await run.keep({ status: problem.status, body: problem })
    throw error
  }
  // The request has succeeded, whether its response can be kept or not.
  const kept = endpoint.secret ? secretNotKept() : toKept(result)
  await run.keep(kept).catch((error: unknown) => context.onError(error))
  return result
}

/** Lines are not kept, so that they cannot be compared. Each line can have an id instead. */
export function rejectKey({ headers }: FastifyRequest): void {
  if (headers['idempotency-key'] !== undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      'a request with a stream has no Idempotency-Key: remove it, and give each line an id',
    )
}

/** The response to a repeated request whose first response had a secret. */
function secretNotKept(): KeptResponse {
  const problem = toProblem(
    new RedriveError(
      'RESPONSE_NOT_KEPT',
      'the request with this Idempotency-Key has succeeded, and the secret of its response was shown once: use it, or rotate the token with a new key',
    ),
  )
  return { status: problem.status, body: problem }
}

/** Content is not kept: it would outlive the removal of its letter. */
function toKept({ status, body }: Result): KeptResponse {
  const kept = hideKept(body)
  return { status, body: JSON.parse(JSON.stringify(kept ?? null)) as Json }
}

/** The response without what comes from payloads, errors and notes. */
function hideKept(body: unknown): unknown {
  if (isLetterView(body)) return hideLetter(body)
  if (isBulkView(body)) return hideBulkAction(body)
  if (isGroupView(body)) return hideGroup(body)
  return body
}

function isBulkView(output: unknown): output is BulkActionView {
  return isObject(output) && 'ineligible' in output && 'progress' in output
}

function isGroupView(output: unknown): output is GroupDetailView {
  return isObject(output) && 'fingerprint' in output && 'trend' in output
}

function isObject(output: unknown): output is object {
  return typeof output === 'object' && output !== null
}

/** The kept response. What it is about is shown with its content while it has not changed. */
async function show({ status, body }: KeptResponse, { dlq, caller }: Context): Promise<Result> {
  if (isLetterView(body)) {
    const letter = await dlq.get(body.id)
    const isSame = letter !== undefined && letter.version === body.version
    return { status, body: isSame ? viewLetter(letter, caller) : body }
  }
  const now = await readAgain(body, dlq, caller)
  const isSame = isDeepStrictEqual(JSON.parse(JSON.stringify(hideKept(now) ?? null)), body)
  return { status, body: isSame ? now : body }
}

/** The bulk action or the group of a kept response, as it is now. */
async function readAgain(body: Json, dlq: DeadLetterQueue, caller: Viewer): Promise<unknown> {
  if (isBulkView(body)) {
    const action = await dlq.bulkAction(body.id).catch(() => undefined)
    return action && viewBulkAction(action, caller)
  }
  if (!isGroupView(body)) return body
  const group = await dlq.group(body.fingerprint)
  return group && viewGroupDetail(group, caller)
}

/** Whether the output is a letter or a saved view: its version is its ETag. */
export function hasVersion(output: unknown): output is { version: number } {
  return isObject(output) && 'version' in output && typeof output.version === 'number'
}

function isLetterView(output: unknown): output is LetterView {
  return isObject(output) && 'fingerprint' in output && 'version' in output
}
