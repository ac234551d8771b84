import {
  endpointNames,
  endpointOf,
  type EndpointName,
  type InputOf,
  type OutputOf,
} from './endpoints.ts'
import { hasQuery, pathKeys, type Endpoint } from './endpoint.ts'
import { problemSchema, problemType, type Problem } from './problem.ts'

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
}

/** A method for each endpoint. */
export type Client = {
  [N in EndpointName]: (
    ...args: Record<string, never> extends InputOf<N>
      ? [input?: InputOf<N>, options?: CallOptions]
      : [input: InputOf<N>, options?: CallOptions]
  ) => Promise<OutputOf<N>>
}

/** An error response of the server. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }
}

export function createClient(options: ClientOptions): Client {
  const call = (name: EndpointName) => (input: object, callOptions: CallOptions) =>
    send(endpointOf(name), input ?? {}, options, callOptions ?? {})
  return Object.fromEntries(endpointNames.map((name) => [name, call(name)])) as Client
}

async function send(
  endpoint: Endpoint,
  input: object,
  { url, token, fetch: request = fetch }: ClientOptions,
  { signal, idempotencyKey }: CallOptions,
): Promise<unknown> {
  const { address, rest } = addressOf(endpoint, input as Record<string, unknown>)
  const isBody = !hasQuery(endpoint)
  const response = await request(`${url}${address}`, {
    method: endpoint.method,
    headers: {
      accept: 'application/json',
      // Other sites cannot send this header, so that a session cookie alone is worth nothing.
      'x-redrive': '1',
      ...(isBody ? { 'content-type': 'application/json' } : {}),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(isBody ? { body: JSON.stringify(rest) } : {}),
    ...(signal ? { signal } : {}),
  })
  if (response.ok) return response.json()
  throw new ProblemError(await readProblem(response))
}

/** The path and the query of a call, and the fields that the path does not have. */
function addressOf(
  endpoint: Pick<Endpoint, 'method' | 'path'>,
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
    const parsed = problemSchema.safeParse(JSON.parse(text))
    if (parsed.success) return parsed.data
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
