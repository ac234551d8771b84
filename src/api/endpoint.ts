import type { z } from 'zod'
import type { Permission } from './permissions.ts'

/**
 * How the scope of a caller bounds an endpoint. `letter`: the letter with the `id` of the input
 * must be in the scope. `filter`: the endpoint reads only letters in the scope. `action`: the
 * filter of the bulk action with the `id` of the input must be in the scope. `capture`: the queue
 * and the tenant of each failure must be in the scope. `all`: the endpoint is about the whole
 * store, so that callers with a scope may not use it. `view`: the caller must be allowed to change
 * the saved view with the `id` of the input. `none`: it shows nothing of the store.
 *
 * What belongs to a queue as a whole cannot be divided by tenant, so that callers with a scope of
 * tenants may not use the following. `queue`: the `queue` of the input must be in the scope.
 * `queues`: the endpoint shows only queues in the scope. `group`: all queues of the group with the
 * `fingerprint` of the input must be in the scope.
 */
type Bounds =
  | 'letter'
  | 'filter'
  | 'action'
  | 'capture'
  | 'all'
  | 'view'
  | 'none'
  | 'queue'
  | 'queues'
  | 'group'

/**
 * Requests with a session cookie need this header, which other sites cannot send. The cookie alone
 * is worth nothing.
 */
export const csrfHeader = 'x-redrive-csrf'

export const linesType = 'application/x-ndjson'
export const eventType = 'application/cloudevents+json'
const eventStreamType = 'text/event-stream'
/** The text format of Prometheus. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * One endpoint: its route, its validation, who may call it, and what it returns. The server, the
 * client and the OpenAPI document all come from the table of endpoints.
 */
export interface Endpoint<Input extends z.ZodObject = z.ZodObject, Output = unknown> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Keys of the input in braces are part of the path. */
  path: `/${string}`
  /** A heading of the reference. */
  tag: string
  /** One sentence for the reference. */
  summary: string
  /**
   * `public`: everybody, without a token. `any`: every caller with a token. `by-action`: what
   * `permissionOfAction` says about the bulk action.
   */
  permission: Permission | 'public' | 'any' | 'by-action'
  bounds: Bounds
  /**
   * What the body is. `lines`: JSON Lines of any number, which are read as they come; an endpoint
   * with them may have the path of another one. `json or event`: JSON, or a CloudEvent. Default:
   * JSON.
   */
  body?: 'json' | 'json or event' | 'lines'
  /** One line of the body. */
  line?: z.core.$ZodType
  /**
   * Strict. The keys that the path does not have come from the query of a GET or DELETE or of a
   * request whose body is lines, and from the JSON body of other requests.
   */
  input: Input
  output: z.core.$ZodType<Output>
  /**
   * The response is many outputs. `lines`: one on each line. `events`: Server-Sent Events, without
   * an end. Absent: it is one output.
   */
  stream?: 'lines' | 'events'
  /** Content type of a response that is a string. Absent: it is JSON. */
  text?: string
  /** Status of a success. Default: 200. */
  status?: 200 | 201 | 202
  /**
   * True: the output has a secret that is shown once, so that no response is kept for its
   * Idempotency-Key.
   */
  secret?: boolean
  /**
   * True: the request adds a letter, and adds it once however often it runs with the same id for
   * it. With an Idempotency-Key it has that id, so that it can run again when its server died.
   */
  repeatable?: boolean
}

/** The keys of the input that the path has. */
export function pathKeys(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, key]) => key!)
}

/** The content type of a response. */
export function responseType({ stream, text }: Pick<Endpoint, 'stream' | 'text'>): string {
  if (stream === 'events') return eventStreamType
  return stream === 'lines' ? linesType : (text ?? 'application/json')
}

/** Whether the input is in the query, and not in the body. */
export function hasQuery({ method, body }: Pick<Endpoint, 'method' | 'body'>): boolean {
  return method === 'GET' || method === 'DELETE' || body === 'lines'
}

/** Keeps the exact types of an endpoint. */
export function endpoint<Input extends z.ZodObject, Output>(
  given: Endpoint<Input, Output>,
): Endpoint<Input, Output> {
  return given
}

/** Keeps the exact types of an endpoint whose response is a stream. */
export function streamEndpoint<
  Input extends z.ZodObject,
  Output,
  Stream extends 'lines' | 'events',
>(
  given: Endpoint<Input, Output> & { stream: Stream },
): Endpoint<Input, Output> & { stream: Stream } {
  return given
}
