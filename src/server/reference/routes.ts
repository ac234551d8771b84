import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../api/openapi.ts'
import { renderReference } from './page.ts'
import { referenceStyle } from './style.ts'

/** The OpenAPI document and its page. They show nothing of the store: everybody may see them. */
export function addReference(app: FastifyInstance, version: string): void {
  const document = openApiDocument(version)
  const page = renderReference(document)
  app.get('/api/openapi.json', () => document)
  app.get('/reference', (_, reply) => reply.type('text/html; charset=utf-8').send(page))
  app.get('/reference.css', (_, reply) =>
    reply.type('text/css; charset=utf-8').send(referenceStyle),
  )
}
