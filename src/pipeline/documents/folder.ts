import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { DocumentStore } from './documents.ts'
import { DocumentRefSchema, DocumentSchema } from '../proto/redrive/pipeline/v1/stream_pb.ts'
import type { Document, DocumentRef } from '../stream.ts'

export interface DocumentFolderOptions {
  /** Created with the first document. It must be on a disk that all nodes share. */
  path: string
  clock?: Clock
}

/** Documents in a folder: one file each, named by its hash and owner. */
export function documentFolder(options: DocumentFolderOptions): DocumentStore {
  return new DocumentFolder(options)
}

class DocumentFolder implements DocumentStore {
  readonly #path: string
  readonly #clock: Clock

  constructor({ path, clock = systemClock }: DocumentFolderOptions) {
    this.#path = resolve(path)
    this.#clock = clock
  }

  async put(document: Document, owner = ''): Promise<DocumentRef> {
    const bytes = bytesOf(document)
    const checksum = sha256(bytes)
    const name = owner === '' ? checksum : sha256(Buffer.from(JSON.stringify([owner, checksum])))
    await this.#make()
    // Written under another name until it is complete and on disk. An existing file is replaced by
    // the same bytes, or repaired.
    const part = join(this.#path, `${name}.${this.#clock.id()}.part`)
    try {
      await writeDurably(part, bytes)
      await rename(part, join(this.#path, name))
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    await sync(this.#path)
    return create(DocumentRefSchema, {
      location: `file:${name}`,
      documentId: document.id,
      size: BigInt(bytes.byteLength),
      checksum,
    })
  }

  /** A new folder is on disk only if its parents are. */
  async #make(): Promise<void> {
    const made = await mkdir(this.#path, { recursive: true })
    if (made === undefined) return
    for (let at = this.#path; at.length >= made.length; at = dirname(at)) await sync(dirname(at))
  }

  async get({ location, checksum }: DocumentRef): Promise<Document> {
    const name = nameIn(location)
    if (name === undefined) throw missing(location, 'is not a location in this folder')
    const bytes = await readFile(join(this.#path, name)).catch((error: unknown) => {
      throw isMissing(error) ? missing(location, 'does not exist', error) : error
    })
    if (sha256(bytes) !== (checksum || name))
      throw missing(location, 'has changed since it was stored')
    return fromBinary(DocumentSchema, bytes)
  }

  async remove({ location }: Pick<DocumentRef, 'location'>): Promise<boolean> {
    const name = nameIn(location)
    if (name === undefined) return false
    try {
      await rm(join(this.#path, name))
    } catch (error) {
      if (isMissing(error)) return false
      throw error
    }
    await sync(this.#path)
    return true
  }
}

/** Attributes are sorted, so that the same document has the same bytes. */
function bytesOf(document: Document): Uint8Array {
  const attributes = Object.fromEntries(
    Object.entries(document.attributes).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
  return toBinary(DocumentSchema, { ...document, attributes })
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** A location comes from outside. Anything but a hash could lead anywhere. */
function nameIn(location: string): string | undefined {
  return /^file:([0-9a-f]{64})$/.exec(location)?.[1]
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A file name is on disk only if its folder is. */
async function sync(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ENOENT'
}

function missing(location: string, what: string, cause?: unknown): RedriveError {
  const place = JSON.stringify(location.slice(0, 100))
  return new RedriveError('DOCUMENT_NOT_FOUND', `the document at ${place} ${what}`, { cause })
}
