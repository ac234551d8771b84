import { chunksOf } from './chunks.ts'
import {
  endpointNames,
  endpointOf,
  type EndpointName,
  type InputOf,
  type IsStream,
  type OutputOf,
} from './endpoints.ts'
import {
  csrfHeader,
  hasQuery,
  linesType,
  pathKeys,
  responseType,
  type Endpoint,
} from './endpoint.ts'
import { readEvents } from './event-stream.ts'
import { isProblem, ProblemError, problemType, type Problem } from './problem.ts'

export { ProblemError } from './problem.ts'

export interface ClientOptions {
  /** Address of the server, such as http://127.0.0.1:7400. In a browser: '' for the same server. */
  url: string
  /** A token. In a browser, the session cookie is used if there is none. */
  token?: string
  fetch?: typeof fetch
}

/** Options of one call. */
export interface CallOptions {
  signal?: AbortSignal
  /** The call is made once, however often it is sent with this key. */
  idempotencyKey?: string
  /** The action happens only if the letter still has this version. */
  ifVersion?: number
  /** The `id` of the last event that was seen, for streams of events. */
  lastEventId?: string
  /** The lines of the body, for endpoints that have some. Browsers send them at the end. */
  lines?: Iterable<string> | AsyncIterable<string>
}

/** Whether an input has no required keys. An empty input has the key type string. */
type CanBeEmpty<T> = string extends keyof T ? true : Partial<T> extends T ? true : false

/**
 * A method for each endpoint. Those with a stream return its items as they come. A stream of events
 * has no end: it connects again when the connection is lost, until its signal aborts.
 */
export type Client = {
  [N in EndpointName]: (
    ...args: CanBeEmpty<InputOf<N>> extends true
      ? [input?: InputOf<N>, options?: CallOptions]
      : [input: InputOf<N>, options?: CallOptions]
  ) => IsStream<N> extends true ? AsyncGenerator<OutputOf<N>> : Promise<OutputOf<N>>
}

export function createClient(options: ClientOptions): Client {
  const call = (name: EndpointName) => (input: object, callOptions: CallOptions) => {
    const endpoint = endpointOf(name)
    const response = (more: CallOptions = {}): Promise<Response> =>
      send(endpoint, input ?? {}, options, { ...callOptions, ...more })
    if (endpoint.stream === 'events') return readEvents(response, callOptions ?? {})
    if (endpoint.stream) return readLines(response)
    return response().then((one) => (endpoint.text ? one.text() : one.json()))
  }
  return Object.fromEntries(endpointNames.map((name) => [name, call(name)])) as unknown as Client
}

async function send(
  endpoint: Endpoint,
  input: object,
  { url, token, fetch: request = fetch }: ClientOptions,
  { signal, idempotencyKey, ifVersion, lastEventId, lines = [] }: CallOptions,
): Promise<Response> {
  const { address, rest } = addressOf(endpoint, input as Record<string, unknown>)
  const body =
    endpoint.body === 'lines'
      ? { body: toStream(lines), type: linesType, duplex: 'half' as const }
      : hasQuery(endpoint)
        ? undefined
        : { body: JSON.stringify(rest), type: 'application/json' }
  const { type, ...sent } = body ?? {}
  const response = await request(`${url}${address}`, {
    method: endpoint.method,
    headers: {
      accept: responseType(endpoint),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(token === undefined ? { [csrfHeader]: '1' } : { authorization: `Bearer ${token}` }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      ...(ifVersion === undefined ? {} : { 'if-match': `"${ifVersion}"` }),
    },
    ...sent,
    ...(signal ? { signal } : {}),
  })
  if (response.ok) return response
  throw new ProblemError(await readProblem(response))
}

/** The lines as a body. Each gets a line break if it has none. */
function toStream(lines: Iterable<string> | AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const iterator =
    Symbol.asyncIterator in lines ? lines[Symbol.asyncIterator]() : lines[Symbol.iterator]()
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await iterator.next()
      if (done) return controller.close()
      controller.enqueue(encoder.encode(value.endsWith('\n') ? value : `${value}\n`))
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}

/** The values of a response that has one on each line. */
async function* readLines<T>(request: () => Promise<Response>): AsyncGenerator<T> {
  const { body } = await request()
  if (!body) return
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(body)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) yield JSON.parse(line) as T
  }
  if (rest !== '') yield JSON.parse(rest) as T
}

/** The path and the query of a call, and the fields that the path does not have. */
function addressOf(
  endpoint: Pick<Endpoint, 'method' | 'path' | 'body'>,
  input: Record<string, unknown>,
): { address: string; rest: Record<string, unknown> } {
  const rest = { ...input }
  let address: string = endpoint.path
  for (const key of pathKeys(endpoint.path)) {
    address = address.replace(`{${key}}`, encodeURIComponent(String(rest[key])))
    delete rest[key]
  }
  if (!hasQuery(endpoint)) return { address, rest }
  const query = new URLSearchParams(
    Object.entries(rest).flatMap(([key, value]) => pairsOf(key, value)),
  )
  return { address: query.size > 0 ? `${address}?${query.toString()}` : address, rest: {} }
}

/** A list becomes a key that is repeated; an object becomes a key for each of its values. */
function pairsOf(key: string, value: unknown): [string, string][] {
  if (value === undefined) return []
  if (Array.isArray(value)) return value.flatMap((item) => pairsOf(key, item))
  if (typeof value === 'string') return [[key, value]]
  if (typeof value !== 'object' || value === null) return [[key, JSON.stringify(value)]]
  return Object.entries(value).flatMap(([name, inner]) => pairsOf(`${key}.${name}`, inner))
}

/** A proxy in between may answer with something else than a problem. */
async function readProblem(response: Response): Promise<Problem> {
  const { status, statusText, headers } = response
  const text = await response.text()
  if (headers.get('content-type')?.startsWith(problemType)) {
    const body: unknown = JSON.parse(text)
    if (isProblem(body)) return body
  }
  const detail = `the server answered with status ${status} ${statusText}: ${text.slice(0, 200)}`
  return {
    type: 'about:blank',
    title: statusText,
    status,
    detail,
    code: 'UNKNOWN',
    retry: status >= 500,
  }
}
