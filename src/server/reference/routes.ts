import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../api/openapi.ts'
import { renderReference } from './page.ts'
import { referenceStyle } from './style.ts'

/** The OpenAPI document and its page. They show nothing of the store: everybody may see them. */
export function addReference(app: FastifyInstance, version: string): void {
  const { document, page } = referenceOf(version)
  app.get('/api/openapi.json', () => document)
  app.get('/reference', (_, reply) => reply.type('text/html; charset=utf-8').send(page))
  app.get('/reference.css', (_, reply) =>
    reply.type('text/css; charset=utf-8').send(referenceStyle),
  )
}

interface Reference {
  document: object
  page: string
}

/** Creating one takes longer than everything else that a server needs to start. */
const references = new Map<string, Reference>()

function referenceOf(version: string): Reference {
  const known = references.get(version)
  if (known) return known
  const document = openApiDocument(version)
  const created = { document, page: renderReference(document) }
  references.set(version, created)
  return created
}
