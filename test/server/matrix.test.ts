import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, ProblemError, type CallOptions, type Client } from '../../src/api/client.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { endpointNames, endpointOf, type EndpointName } from '../../src/api/endpoints.ts'
import {
  permissionOfAction,
  permissions,
  permissionsOfRole,
  roles,
  type Permission,
  type Scope,
} from '../../src/api/permissions.ts'
import type { Problem } from '../../src/api/problem.ts'
import type { RedriveEvent } from '../../src/observer.ts'
import { logObserver } from '../../src/observers/log.ts'
import type { NewToken } from '../../src/server/tokens.ts'
import { aServer, readAll, type TestServer } from './a-server.ts'
import { examples, queue, secret, tenant, type Example } from './examples.ts'

let server: TestServer
/** The same, and hides the secret from everybody without the permission `payload:reveal`. */
let redacting: TestServer
/** What the second server logs, and sends as notifications. */
const published: string[] = []

beforeAll(async () => {
  const lines = new Writable({
    write(chunk: Buffer, _, done) {
      published.push(chunk.toString())
      done()
    },
  })
  const notify = Object.assign((event: RedriveEvent) => published.push(JSON.stringify(event)), {
    leavesProcess: true,
  })
  server = await aServer()
  redacting = await aServer({
    redact: { patterns: [secret], detectors: [] },
    observers: [logObserver(pino({ level: 'debug' }, lines)), notify],
  })
})

afterAll(async () => {
  await server.close()
  await redacting.close()
  expect([...server.errors, ...redacting.errors]).toEqual([])
  expect(published.length).toBeGreaterThan(0)
  expect(published.filter((text) => text.includes(secret))).toEqual([])
})

/** A caller. Without permissions: a caller without a token. */
interface Column {
  permissions?: readonly Permission[]
  token?: Partial<NewToken>
  scope: 'none' | 'inside' | 'inside-tenants' | 'outside' | 'outside-tenants'
}

/** The permission of the example of an endpoint. All examples of bulk actions are a retry. */
function requiredBy({ permission }: Endpoint): Permission | 'public' | 'any' {
  return permission === 'by-action' ? permissionOfAction.retry : permission
}

function columnsOf(endpoint: Endpoint): { [title: string]: Column } {
  const required = requiredBy(endpoint)
  const only = required === 'public' || required === 'any' ? [] : [required]
  const others = permissions.filter((one) => one !== required)
  const withPermissions = (given: readonly Permission[]): Column => ({
    permissions: given,
    // A token has at least one permission.
    token: { permissions: given.length > 0 ? [...given] : ['letter:capture'] },
    scope: 'none',
  })
  const withScope = (scope: Column['scope'], given: Scope): Column => ({
    permissions,
    token: { role: 'admin', ...(given as Partial<NewToken>) },
    scope,
  })
  return {
    'without a token': { scope: 'none' },
    ...Object.fromEntries(
      roles.map((role) => [
        `as ${role}`,
        { permissions: permissionsOfRole[role], token: { role }, scope: 'none' as const },
      ]),
    ),
    'with only the required permission': withPermissions(only),
    'with all but the required permission': withPermissions(others),
    'with the queue in scope': withScope('inside', { queues: [queue] }),
    'with another queue in scope': withScope('outside', { queues: ['other'] }),
    'with the tenant in scope': withScope('inside-tenants', { tenants: [tenant] }),
    'with another tenant in scope': withScope('outside-tenants', { tenants: ['other'] }),
  }
}

/** The status that the table demands. */
function expectedStatus(endpoint: Endpoint, example: Example, column: Column): number {
  const { bounds, status = 200 } = endpoint
  const required = requiredBy(endpoint)
  const allowed = example.allowed ?? status
  if (required === 'public') return allowed
  if (!column.permissions) return 401
  if (required !== 'any' && !column.permissions.includes(required)) return 403
  const { scope } = column
  if (scope === 'none') return allowed
  if (bounds === 'all') return 403
  const isWholeQueue = bounds === 'queue' || bounds === 'queues' || bounds === 'group'
  if (isWholeQueue && scope.endsWith('-tenants')) return 403
  if (scope.startsWith('inside')) return allowed
  if (bounds === 'letter' || bounds === 'group' || bounds === 'action') return 404
  if (bounds === 'queue') return 403
  return example.outside ?? allowed
}

/** A stream of events has no end: the events up to the one that says that it is ready. */
async function* untilReady(stream: AsyncIterable<unknown>): AsyncGenerator {
  for await (const item of stream) {
    yield item
    if ((item as { type?: string }).type === 'ready') return
  }
}

/** The items of a stream. The problem of a line is thrown as if it were that of the response. */
async function readStream(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items = await readAll(untilReady(stream))
  for (const item of items) {
    const { problem } = item as { problem?: Problem }
    if (problem) throw new ProblemError(problem)
  }
  return items
}

async function call(
  client: Client,
  name: EndpointName,
  input: object,
  options: CallOptions,
): Promise<{ status: number; text: string }> {
  const { stream, status = 200 } = endpointOf(name)
  const send = client[name] as (input: object, options: CallOptions) => unknown
  try {
    const response = send(input, options)
    const output = stream ? await readStream(response as AsyncIterable<unknown>) : await response
    return { status, text: JSON.stringify(output) }
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    return { status: error.problem.status, text: JSON.stringify(error.problem) }
  }
}

it.each(endpointNames)('there is an example for %s', (name) => {
  expect(Object.keys(examples)).toContain(name)
})

describe.each(endpointNames)('%s', (name) => {
  const endpoint = endpointOf(name)
  const example: Example = examples[name]

  it.each(Object.entries(columnsOf(endpoint)))('%s', async (_, column) => {
    const input = await example.input(server)
    const token = column.token ? { token: await server.token(column.token) } : {}
    const client = createClient({ url: server.url, ...token })
    const lines = example.lines ? { lines: await example.lines(server) } : {}
    const { status, text } = await call(client, name, input, lines)
    expect(status, text).toBe(expectedStatus(endpoint, example, column))
    if (!column.permissions?.includes('payload:read')) expect(text).not.toContain(secret)
    const isOutside = column.scope === 'outside' || column.scope === 'outside-tenants'
    const isList = endpoint.bounds === 'filter' || endpoint.bounds === 'queues'
    if (isOutside && isList && status === 200) expect(text).not.toContain(queue)
  })

  it.each(['operator', 'admin'] as const)('shows no hidden value to the %s', async (role) => {
    const input = await example.input(redacting)
    const token = await redacting.token({ role })
    const client = createClient({ url: redacting.url, token })
    const lines = example.lines ? { lines: await example.lines(redacting) } : {}
    const { text } = await call(client, name, input, lines)
    expect(text).not.toContain(secret)
  })
})
