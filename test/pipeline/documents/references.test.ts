import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { documentOf, putAway } from '../../../src/pipeline/documents/references.ts'
import { documentFolder } from '../../../src/pipeline/documents/folder.ts'
import { aStream, type PipeStream } from '../../../src/pipeline/stream.ts'
import { aFolder } from '../../folders.ts'
import { freshName } from '../../servers/servers.ts'

describe('putAway', () => {
  const folder = aFolder('carrying')
  let path: string

  beforeEach(() => {
    path = join(folder, freshName())
  })

  const of = (streamId: string, accountId: string): PipeStream =>
    aStream({
      streamId,
      metadata: { accountId },
      content: { case: 'document', value: { id: 'd1', body: Buffer.alloc(100, 1) } },
    })

  const locationIn = ({ content }: PipeStream): string =>
    content.case === 'documentRef' ? content.value.location : ''

  it('gives each stream its own document, so that erasing one leaves the others', async () => {
    const documents = documentFolder({ path })
    const streams = [of('1', 'ada'), of('2', 'bob'), of('3', 'bob')]
    for (const stream of streams) await putAway(stream, documents, 10)
    expect(new Set(streams.map(locationIn)).size).toBe(3)
    await documents.remove({ location: locationIn(streams[0]!) })
    for (const stream of streams.slice(1))
      expect(await documentOf(stream, documents)).toMatchObject({ id: 'd1' })
  })

  it('stores the same document of one stream once', async () => {
    const documents = documentFolder({ path })
    const [one, again] = [of('1', 'ada'), of('1', 'ada')]
    for (const stream of [one, again]) await putAway(stream, documents, 10)
    expect(locationIn(one)).toBe(locationIn(again))
  })

  it('leaves a small document in the stream', async () => {
    const stream = of('1', 'ada')
    await putAway(stream, documentFolder({ path }), 100)
    expect(stream.content.case).toBe('document')
  })
})
