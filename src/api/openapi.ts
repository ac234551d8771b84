import { z } from 'zod'
import {
  csrfHeader,
  eventType,
  hasQuery,
  linesType,
  pathKeys,
  responseType,
  type Endpoint,
} from './endpoint.ts'
import { endpointNames, endpointOf } from './endpoints.ts'
import { permissionOfAction } from './permissions.ts'
import { problemType } from './problem.ts'
import { problemSchema } from './schemas/problem.ts'

type JsonObject = { [key: string]: unknown }

/** The OpenAPI 3.1 document of the table of endpoints. */
export function openApiDocument(version: string): JsonObject {
  const paths: { [path: string]: JsonObject } = {}
  const schemas = new Schemas()
  schemas.add(problemSchema, 'output')
  for (const name of endpointNames) {
    const endpoint = endpointOf(name)
    const { path } = endpoint
    const method = endpoint.method.toLowerCase()
    const operation = operationOf(name, endpoint, schemas)
    const other = paths[path]?.[method] as Operation | undefined
    paths[path] = { ...paths[path], [method]: other ? merge(other, operation) : operation }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Redrive',
      version,
      description: 'Stores failed work, retries it, and lets people inspect, edit and replay it.',
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'An API token, or a JWT.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-redrive',
          description: `The cookie of createSession: redrive over http. Requests other than GET need the header ${csrfHeader}: 1.`,
        },
      },
      schemas: schemas.named,
    },
    security: [{ token: [] }, { session: [] }],
    paths,
  }
}

type Operation = JsonObject & {
  summary: string
  requestBody?: { content: JsonObject }
  responses: JsonObject
}

/** An address has one operation: endpoints that share it differ in the content type of the body. */
function merge(one: Operation, other: Operation): Operation {
  return {
    ...one,
    description: `${one.summary} With a body of ${linesType}: ${other.summary}`,
    requestBody: {
      ...one.requestBody,
      content: { ...one.requestBody?.content, ...other.requestBody?.content },
    },
    responses: { ...other.responses, ...one.responses },
  }
}

function operationOf(name: string, endpoint: Endpoint, schemas: Schemas): Operation {
  const { tag, summary, permission, status = 200 } = endpoint
  const input = schemas.add(endpoint.input, 'input') as {
    properties?: JsonObject
    required?: string[]
  }
  const { properties = {}, required = [] } = input
  const inPath = pathKeys(endpoint.path)
  const others = Object.keys(properties).filter((key) => !inPath.includes(key))
  const parameter = (place: 'path' | 'query', key: string): JsonObject => {
    const { description, ...schema } = properties[key] as JsonObject
    return {
      name: key,
      in: place,
      required: place === 'path' || required.includes(key),
      ...(description === undefined ? {} : { description }),
      schema,
    }
  }
  const parameters = [
    ...inPath.map((key) => parameter('path', key)),
    ...(hasQuery(endpoint) ? others.map((key) => parameter('query', key)) : []),
  ]
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(permission === 'public' ? { security: [] } : {}),
    ...permissionOf(permission),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBodyOf(endpoint, schemas, () => bodyOf(properties, others, required)),
    responses: {
      [status]: {
        description: 'Success.',
        content: {
          [responseType(endpoint)]: {
            schema: schemas.add(endpoint.output, 'output'),
          },
        },
      },
      default: {
        description: 'A problem (RFC 9457).',
        content: { [problemType]: { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  }
}

function permissionOf(permission: Endpoint['permission']): JsonObject {
  if (permission === 'public' || permission === 'any') return {}
  return permission === 'by-action'
    ? { 'x-permission-by-action': permissionOfAction }
    : { 'x-permission': permission }
}

function requestBodyOf(
  endpoint: Endpoint,
  schemas: Schemas,
  json: () => { required: boolean; content: JsonObject } | undefined,
): { requestBody?: { required: boolean; content: JsonObject } } {
  if (endpoint.line) {
    const schema = schemas.add(endpoint.line, 'input')
    return { requestBody: { required: true, content: { [linesType]: { schema } } } }
  }
  const body = hasQuery(endpoint) ? undefined : json()
  if (!body) return {}
  const event =
    endpoint.body === 'json or event' ? { [eventType]: { schema: { type: 'object' } } } : {}
  return { requestBody: { ...body, content: { ...body.content, ...event } } }
}

function bodyOf(
  properties: JsonObject,
  keys: string[],
  required: string[],
): { required: boolean; content: JsonObject } | undefined {
  if (keys.length === 0) return undefined
  const needed = keys.filter((key) => required.includes(key))
  const schema = {
    type: 'object',
    properties: Object.fromEntries(keys.map((key) => [key, properties[key]])),
    ...(needed.length > 0 ? { required: needed } : {}),
    additionalProperties: false,
  }
  return { required: needed.length > 0, content: { 'application/json': { schema } } }
}

/** Schemas as JSON Schema. Those with an id are kept once, and the others refer to them. */
class Schemas {
  readonly named: { [id: string]: unknown } = {}

  add(schema: z.core.$ZodType, io: 'input' | 'output'): JsonObject {
    const json = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
    const {
      $schema: _,
      $defs,
      id,
      ...rest
    } = JSON.parse(
      JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/'),
    ) as JsonObject & { id?: string; $defs?: JsonObject }
    Object.assign(this.named, $defs)
    if (id === undefined) return rest
    this.named[id] = rest
    return { $ref: `#/components/schemas/${id}` }
  }
}
