import { z } from 'zod'
import { hasQuery, pathKeys, type Endpoint } from '../api/endpoint.ts'
import { firstIssue } from '../check/issues.ts'
import { describeType } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'

/** The parts of a request that carry input. */
export interface RequestParts {
  params: { [key: string]: string }
  query: URLSearchParams
  body: unknown
}

/** The input of an endpoint, checked. Rejects the first thing that is wrong with it, by name. */
export function readInput(endpoint: Endpoint, parts: RequestParts): { [key: string]: unknown } {
  const fromPath = pick(parts.params, pathKeys(endpoint.path))
  const rest = hasQuery(endpoint) ? readQuery(endpoint.input, parts.query) : readBody(parts.body)
  for (const key of Object.keys(fromPath))
    if (Object.hasOwn(rest, key))
      throw invalid(`"${key}" is part of the path: remove it from the rest of the request`)
  return checkInput(endpoint.input, { ...rest, ...fromPath })
}

/** The value, checked by a schema. Rejects the first thing that is wrong with it, by name. */
export function checkInput(schema: z.ZodObject, given: unknown): { [key: string]: unknown } {
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const { path, isUnknownKey, text } = firstIssue(result.error, schema, given)
  const key = path.join('.')
  if (key === '') throw invalid(`the value ${text}`)
  throw invalid(isUnknownKey ? `unknown field "${key}": ${text}` : `field "${key}" ${text}`)
}

/** The JSON value of some bytes. `thing` names them in the error. */
export function parseJson(bytes: Buffer, thing: string): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    throw invalid(`${thing} is not valid JSON in UTF-8`)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The payload that is given in one of three forms. Undefined: there is none. */
export function payloadOf(
  {
    base64,
    ...others
  }: { json?: Json | undefined; text?: string | undefined; base64?: string | undefined },
  rule: string,
): Json | Buffer | undefined {
  const given = Object.entries({ ...others, base64 }).filter(([, value]) => value !== undefined)
  if (given.length > 1) throw invalid(`${rule}, got ${given.map(([name]) => name).join(' and ')}`)
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  return others.json === undefined ? others.text : others.json
}

function readBody(body: unknown): { [key: string]: unknown } {
  if (body === undefined || body === null) return {}
  if (typeof body !== 'object' || Array.isArray(body))
    throw invalid(`the body must be a JSON object, got ${describeType(body)}`)
  return body as { [key: string]: unknown }
}

interface Node {
  type?: string
  anyOf?: Node[]
}

/**
 * A query as an object: numbers and booleans by the schema, a list for a key that comes several
 * times, and an object for keys like `metadata.KEY`.
 */
function readQuery(schema: z.ZodObject, query: URLSearchParams): { [key: string]: unknown } {
  const nodes = nodesOf(schema)
  const input = new Map<string, unknown>()
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name)
    const dot = name.indexOf('.')
    const key = dot < 0 ? name : name.slice(0, dot)
    const node = nodes.get(key)
    if (dot > 0 && node?.type === 'object') {
      const entries = { ...(input.get(key) as object), [name.slice(dot + 1)]: scalarOf(values[0]!) }
      input.set(key, entries)
    } else {
      input.set(name, valueOf(node, values))
    }
  }
  return Object.fromEntries(input)
}

const nodesCache = new WeakMap<z.ZodObject, Map<string, Node>>()

function nodesOf(schema: z.ZodObject): Map<string, Node> {
  const cached = nodesCache.get(schema)
  if (cached) return cached
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const nodes = new Map(Object.entries(properties as { [key: string]: Node }))
  nodesCache.set(schema, nodes)
  return nodes
}

/** What cannot be converted stays a string, so that the schema rejects it with its value. */
function valueOf(node: Node | undefined, values: string[]): unknown {
  const forms = node?.anyOf ?? (node ? [node] : [])
  const isList = forms.some(({ type }) => type === 'array')
  if (isList && (values.length > 1 || forms.length === 1)) return values
  if (values.length > 1) return values
  const [text] = values as [string]
  if (forms.some(({ type }) => type === 'number' || type === 'integer'))
    return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
  if (forms.some(({ type }) => type === 'boolean'))
    return text === 'true' ? true : text === 'false' ? false : text
  return text
}

/** A metadata value: JSON if it is a number, a boolean or null, otherwise a string. */
function scalarOf(text: string): unknown {
  return /^(-?\d+(\.\d+)?|true|false|null)$/.test(text) ? (JSON.parse(text) as unknown) : text
}

function pick(from: { [key: string]: string }, keys: string[]): { [key: string]: string } {
  return Object.fromEntries(keys.map((key) => [key, from[key]!]))
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
