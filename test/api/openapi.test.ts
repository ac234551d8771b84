import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'
import { pathKeys } from '../../src/api/endpoint.ts'
import { openApiDocument } from '../../src/api/openapi.ts'

const document = openApiDocument('1.2.3') as {
  paths: { [path: string]: { [method: string]: { operationId: string; parameters?: object[] } } }
  components: { schemas: { [name: string]: object } }
}

describe('openApiDocument', () => {
  it('has an operation for every address of an endpoint', () => {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    const shared = new Set(['captureMany'])
    expect(ids.toSorted()).toEqual(endpointNames.filter((name) => !shared.has(name)).toSorted())
    const { requestBody, responses } = document.paths['/api/capture']!['post'] as unknown as {
      requestBody: { content: object }
      responses: object
    }
    expect(Object.keys(requestBody.content)).toEqual([
      'application/json',
      'application/cloudevents+json',
      'application/x-ndjson',
    ])
    expect(Object.keys(responses).toSorted()).toEqual(['200', '201', 'default'])
  })

  it('refers only to schemas that it has', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)]
    const known = Object.keys(document.components.schemas).map(
      (name) => `#/components/schemas/${name}`,
    )
    expect(references.length).toBeGreaterThan(0)
    for (const [, reference] of references) expect(known).toContain(reference)
  })

  it('has valid JSON Schemas', () => {
    const ajv = new Ajv2020({ strict: false })
    for (const schema of Object.values(document.components.schemas)) {
      const { $defs: _, ...own } = schema as { $defs?: object }
      expect(ajv.validateSchema(own)).toBe(true)
    }
  })
})

describe('endpoints', () => {
  it.each(endpointNames)('%s has its path keys in its input, and a strict input', (name) => {
    const { path, input, bounds, permission } = endpointOf(name)
    for (const key of pathKeys(path)) expect(Object.keys(input.shape)).toContain(key)
    expect(input.safeParse({ nonsense: 1 }).success).toBe(false)
    if (bounds === 'letter') expect(Object.keys(input.shape)).toContain('id')
    if (bounds === 'action') expect(Object.keys(input.shape)).toContain('id')
    if (bounds === 'group') expect(Object.keys(input.shape)).toContain('fingerprint')
    if (permission === 'by-action' && bounds !== 'action')
      expect(Object.keys(input.shape)).toContain('action')
    if (bounds === 'queue') expect(Object.keys(input.shape)).toContain('queue')
  })
})
