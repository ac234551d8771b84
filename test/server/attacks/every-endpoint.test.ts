import { request as httpRequest } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { hasQuery, linesType, pathKeys, type Endpoint } from '../../../src/api/endpoint.ts'
import { endpointNames, endpointOf, type EndpointName } from '../../../src/api/endpoints.ts'
import { problemType } from '../../../src/api/problem.ts'
import { problemSchema } from '../../../src/api/schemas/problem.ts'
import { atDepth } from '../../depth.ts'
import { withServerInEachTest, type TestServer } from '../a-server.ts'
import { examples, type Example } from '../examples.ts'
import { snapshotOf } from './snapshot.ts'

let server: TestServer
withServerInEachTest((started) => (server = started))
afterEach(() => expect(Object.prototype).not.toHaveProperty('polluted'))

type Fields = { [key: string]: unknown }

/** A request that is almost the example of its endpoint. */
interface Attack {
  what: string
  /** Fields that replace those of the example. */
  fields?: Fields
  /** Names and JSON of fields that are added to the body, or to the query. */
  added?: string
  body?: string | Buffer
  headers?: Record<string, string>
  /** True: some endpoints accept it, because the value is valid there. */
  mayPass?: boolean
}

/** More than the stack has frames. */
const depth = atDepth(25_000, 100_000)
const deep = '['.repeat(depth) + ']'.repeat(depth)
const deepObject = '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)
const controls = '\u0000\u001b[2J\u001b]0;x\u0007\r\nset-cookie: a=b\u2028\u202e\ufeff'

/** Values of every kind, for every field. */
const values: [what: string, value: unknown][] = [
  ['null', null],
  ['true', true],
  ['a huge number', 1e308],
  ['a negative fraction', -0.5],
  ['an empty string', ''],
  ['an array', [[]]],
  ['an object', { $gt: '', toString: 1 }],
  ['control characters', controls],
  ['half of a surrogate pair', '\ud800'],
  ['a long string', 'x'.repeat(20_000)],
  ['a path that climbs', '../../etc/passwd\u0000'],
  ['an expensive pattern', '(a+)+$'.repeat(50)],
  ['code', "'; DROP TABLE letters; --${7*7}{{7*7}}<script>alert(1)</script>"],
]

function attacksOn(endpoint: Endpoint): Attack[] {
  const fields = Object.keys(endpoint.input.shape)
  const inPath = pathKeys(endpoint.path)
  return [
    ...fields.flatMap((key) =>
      values.map(([what, value]) => ({
        what: `${key}: ${what}`,
        fields: { [key]: value },
        mayPass: true,
      })),
    ),
    { what: 'an unknown field', added: '"unheard":1' },
    { what: 'a prototype field', added: '"__proto__":{"polluted":true}' },
    { what: 'a constructor field', added: '"constructor":{"prototype":{"polluted":true}}' },
    ...(hasQuery(endpoint)
      ? []
      : [
          { what: 'a deep unknown field', added: `"unheard":${deep}` },
          ...fields
            .filter((key) => !inPath.includes(key))
            .flatMap((key) => [
              { what: `${key}: a deep array`, added: `"${key}":${deep}`, mayPass: true },
              { what: `${key}: a deep object`, added: `"${key}":${deepObject}`, mayPass: true },
              {
                what: `${key}: a prototype field in it`,
                added: `"${key}":{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}`,
                mayPass: true,
              },
            ]),
          { what: 'no JSON', body: '{"' },
          { what: 'an array', body: '[]' },
          { what: 'a number', body: '1' },
          { what: 'invalid UTF-8', body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]) },
          { what: 'another content type', headers: { 'content-type': 'text/plain' } },
        ]),
    ...('cursor' in endpoint.input.shape
      ? ['abc', '%', '-1', 'eyJ4IjoxfQ', '../..'].map((cursor) => ({
          what: `the cursor ${cursor}`,
          fields: { cursor },
          // The cursor of queues is the name of a queue.
          mayPass: endpoint.path === '/api/queues',
        }))
      : []),
    ...(endpoint.method === 'GET'
      ? []
      : [
          { what: 'a compressed body', body: '{}', headers: { 'content-encoding': 'gzip' } },
          { what: 'two encodings', body: '{}', headers: { 'content-encoding': 'identity, br' } },
        ]),
    ...(endpoint.bounds === 'letter' && endpoint.method !== 'GET'
      ? ['"abc"', '"-1"', '1', '"1", "2"', `"${'9'.repeat(400)}"`].map((etag) => ({
          what: `If-Match ${etag.slice(0, 20)}`,
          headers: { 'if-match': etag },
        }))
      : []),
  ]
}

interface Answer {
  status: number
  type: string
  body: string
}

/** The request of an attack, exactly as given: a client would normalize it. */
async function send(
  endpoint: Endpoint,
  input: Fields,
  lines: string | undefined,
  attack: Attack,
  token: string,
): Promise<Answer> {
  const rest: Fields = { ...input, ...attack.fields }
  let path: string = endpoint.path
  for (const key of pathKeys(endpoint.path)) {
    path = path.replace(`{${key}}`, encode(rest[key]))
    delete rest[key]
  }
  let body = attack.body ?? lines
  if (hasQuery(endpoint)) {
    const query = Object.entries(rest).map(([key, value]) => `${key}=${encode(value)}`)
    const added = [...(attack.added ?? '').matchAll(/^"(\w+)":/g)].map(([, key]) => `${key}=1`)
    const all = [...query, ...added].join('&')
    if (all !== '') path += `?${all}`
  } else {
    const json = JSON.stringify(rest)
    body ??=
      attack.added === undefined
        ? json
        : `${json.slice(0, -1)}${json === '{}' ? '' : ','}${attack.added}}`
  }
  const type = endpoint.body === 'lines' ? linesType : 'application/json'
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': type }),
    ...attack.headers,
  }
  return exchange(endpoint.method, path, headers, body)
}

/** The value as a part of an address, which cannot have half of a surrogate pair. */
const encode = (value: unknown): string =>
  encodeURIComponent(
    typeof value === 'string' ? value.toWellFormed() : (JSON.stringify(value) ?? ''),
  )

function exchange(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Buffer | undefined,
): Promise<Answer> {
  const { hostname: host, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, method, path, headers }, (response) => {
      const { statusCode: status = 0 } = response
      const type = response.headers['content-type'] ?? ''
      // A stream of events has no end.
      if (type.startsWith('text/event-stream')) {
        request.destroy()
        return resolve({ status, type, body: '' })
      }
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve({ status, type, body: Buffer.concat(parts).toString() }))
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end(body)
  })
}

async function exampleOf(
  name: EndpointName,
): Promise<{ input: Fields; lines: string | undefined; token: string }> {
  const example = examples[name] as Example
  const input = (await example.input(server)) as Fields
  const lines = example.lines && [...(await example.lines(server))].join('\n')
  return { input, lines, token: await server.token() }
}

describe('an attack on every field of an endpoint gets a problem and changes nothing', () => {
  it.each(endpointNames)('%s', { timeout: 120_000 }, async (name) => {
    const endpoint = endpointOf(name)
    let { input, lines, token } = await exampleOf(name)
    let before = await snapshotOf(server.store)
    for (const attack of attacksOn(endpoint)) {
      const { status, type, body } = await send(endpoint, input, lines, attack, token)
      const what = `${attack.what.slice(0, 100)}: ${status} ${body.slice(0, 300)}`
      expect(status, what).toBeLessThan(500)
      expect(status, what).not.toBe(429)
      if (status < 400) {
        expect(attack.mayPass, what).toBe(true)
        // What has only been read needs no new example: lists stay short.
        if (isDeepStrictEqual(await snapshotOf(server.store), before)) continue
        ;({ input, lines, token } = await exampleOf(name))
        before = await snapshotOf(server.store)
        continue
      }
      expect(type, what).toContain(problemType)
      if (body !== '') expect(problemSchema.safeParse(JSON.parse(body)).success, what).toBe(true)
      expect(await snapshotOf(server.store), what).toEqual(before)
    }
  })
})
