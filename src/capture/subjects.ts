import { createHmac } from 'node:crypto'
import { createSecret } from '../clock/secret.ts'
import { subjectKind } from '../letter/content.ts'
import type { DeadLetter, Json, Payload } from '../letter/letter.ts'
import { decodePayload } from '../letter/payload.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'
import type { CaptureContext } from './context.ts'

const hashKeyId = 'hash-key'
const hashBytes = 32

/** Names data subjects by a keyed hash, so that the store has no list of people. */
export class Subjects {
  readonly #store: Pick<Store, 'records'>
  #hashKey: string | undefined

  constructor(store: Pick<Store, 'records'>) {
    this.#store = store
  }

  /** The keyed hash of a subject: 32 hexadecimal digits. */
  async hashOf(subject: string): Promise<string> {
    this.#hashKey ??= await this.#loadKey()
    const hash = createHmac('sha256', this.#hashKey).update(subject.normalize())
    return hash.digest('hex').slice(0, 32)
  }

  async #loadKey(): Promise<string> {
    const { records } = this.#store
    for (;;) {
      const record = await records.get(subjectKind, hashKeyId)
      if (record) return (record.value as { key: string }).key
      await records.put(subjectKind, hashKeyId, { key: createSecret(hashBytes) }, 0)
    }
  }
}

/**
 * Adds the keyed hashes of their data subjects to letters. A letter is never lost because its
 * subject cannot be recorded: it is then stored without it.
 */
export async function nameSubjects(
  letters: readonly DeadLetter[],
  named: WeakMap<DeadLetter, string>,
  subjects: Subjects,
  hub: ObserverHub,
): Promise<void> {
  for (const letter of letters) {
    const subject = named.get(letter)
    if (subject === undefined) continue
    try {
      letter.payload = { ...letter.payload, subject: await subjects.hashOf(subject) }
    } catch (error) {
      const during = `capture of ${letter.queue}: letter ${letter.id} is stored without its data subject`
      hub.emit({ type: 'error', during, error })
    }
  }
}

/** The data subject of a failure: given with it, or at the path of its queue. */
export function findSubject(
  { context, payload }: { context: CaptureContext; payload: Payload },
  path: string | undefined,
): string | undefined {
  if (context.subject !== undefined) return context.subject
  if (path === undefined) return undefined
  const [root, ...keys] = path.split('.')
  const value = keys.reduce(readKey, root === 'metadata' ? context.metadata : decode(payload))
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function readKey(value: unknown, key: string): unknown {
  const isObject = typeof value === 'object' && value !== null
  return isObject && Object.hasOwn(value, key) ? (value as { [key: string]: Json })[key] : undefined
}

function decode(payload: Payload): unknown {
  try {
    return decodePayload(payload)
  } catch {
    return undefined
  }
}
