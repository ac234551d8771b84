import { create } from '@bufbuild/protobuf'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { aFolder } from '../../folders.ts'
import { freshName } from '../../servers/servers.ts'
import { documentFolder } from '../../../src/pipeline/documents/folder.ts'
import type { DocumentStore } from '../../../src/pipeline/documents/documents.ts'
import {
  DocumentRefSchema,
  DocumentSchema,
} from '../../../src/pipeline/proto/redrive/pipeline/v1/stream_pb.ts'

const aDocument = (attributes: Record<string, string> = { a: '1', b: '2' }) =>
  create(DocumentSchema, {
    id: 'd1',
    body: Buffer.from([0, 1, 255]),
    contentType: 'application/pdf',
    attributes,
  })

describe('documentFolder', () => {
  const folder = aFolder('documents')
  let above: string
  let path: string
  let documents: DocumentStore

  beforeEach(async () => {
    above = join(folder, freshName())
    await mkdir(above)
    path = join(above, 'some', 'folder')
    documents = documentFolder({ path })
  })

  const lost = (location: string, checksum = '') =>
    documents.get(create(DocumentRefSchema, { location, checksum }))

  it('returns a stored document', async () => {
    const ref = await documents.put(aDocument())
    expect(ref.location).toMatch(/^file:[0-9a-f]{64}$/)
    expect(ref).toMatchObject({ documentId: 'd1', checksum: ref.location.slice(5) })
    expect(await documents.get(ref)).toEqual(aDocument())
    const name = ref.location.slice(5)
    expect(ref.size).toBe(BigInt((await stat(join(path, name))).size))
  })

  it('stores the same document once, whatever the order of its attributes', async () => {
    const refs = await Promise.all(
      [aDocument(), aDocument({ b: '2', a: '1' }), aDocument()].map((one) => documents.put(one)),
    )
    expect(new Set(refs.map(({ location }) => location)).size).toBe(1)
    expect(await readdir(path)).toHaveLength(1)
  })

  it('distinguishes different documents', async () => {
    const one = await documents.put(aDocument())
    const other = await documents.put(aDocument({ a: '1' }))
    expect(one.location).not.toBe(other.location)
  })

  it('stores the same document of two owners separately, and that of one owner once', async () => {
    const ada = await documents.put(aDocument(), 'ada')
    const bob = await documents.put(aDocument(), 'bob')
    expect(await documents.put(aDocument(), 'ada')).toEqual(ada)
    expect(await readdir(path)).toHaveLength(2)
    await documents.remove(ada)
    await expect(documents.get(ada)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' })
    expect(await documents.get(bob)).toEqual(aDocument())
    await expect(lost(bob.location)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' })
  })

  it('rejects a changed document, and repairs it when it is stored again', async () => {
    const ref = await documents.put(aDocument())
    const file = join(path, ref.checksum)
    const bytes = await readFile(file)
    await writeFile(file, bytes.subarray(0, -1))
    await expect(documents.get(ref)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' })
    await documents.put(aDocument())
    expect(await documents.get(ref)).toEqual(aDocument())
  })

  it('rejects a reference with another checksum', async () => {
    const { location } = await documents.put(aDocument())
    await expect(lost(location, 'f'.repeat(64))).rejects.toMatchObject({
      code: 'DOCUMENT_NOT_FOUND',
    })
    expect(await lost(location)).toEqual(aDocument())
  })

  it('removes a document, and returns whether it existed', async () => {
    const ref = await documents.put(aDocument())
    expect(await documents.remove(ref)).toBe(true)
    expect(await documents.remove(ref)).toBe(false)
    await expect(documents.get(ref)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' })
  })

  it('leaves no file behind if it cannot write', async () => {
    const ref = await documents.put(aDocument())
    await documents.remove(ref)
    await mkdir(join(path, ref.checksum))
    await expect(documents.put(aDocument())).rejects.toThrow()
    expect(await readdir(path)).toEqual([ref.checksum])
  })

  it.each([
    'file:../outside',
    'file:/etc/passwd',
    `file:${'a'.repeat(63)}/`,
    `file:${'A'.repeat(64)}`,
    `file:${'a'.repeat(64)}\n`,
    `file:../${'a'.repeat(64)}`,
    `file://${'a'.repeat(64)}`,
    'a'.repeat(64),
    's3://bucket/key',
    '',
    'x'.repeat(100_000),
  ])('never leaves its folder for %j', async (location) => {
    await documents.put(aDocument())
    const outside = join(path, '..', 'outside')
    await writeFile(outside, 'not ours')
    await expect(lost(location)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' })
    expect(await documents.remove({ location })).toBe(false)
    expect(await readFile(outside, 'utf8')).toBe('not ours')
  })
})
