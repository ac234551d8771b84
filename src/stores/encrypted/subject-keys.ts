import { createSecretKey, type KeyObject } from 'node:crypto'
import { createRandomBytes } from '../../clock/secret.ts'
import { keyBytes } from '../../check/encryption-keys.ts'
import { subjectKind } from '../../letter/content.ts'
import type { Records } from '../../store.ts'
import type { SubjectKeys } from './cipher.ts'

/**
 * The keys of data subjects, as records that the key of the provider encrypts. A key is read for
 * each use: once its record is removed, no process can use it.
 */
export function subjectKeys(records: () => Records): SubjectKeys {
  const find = async (subject: string): Promise<KeyObject | undefined> => {
    const record = await records().get(subjectKind, subject)
    if (!record) return undefined
    return createSecretKey(Buffer.from((record.value as { key: string }).key, 'base64'))
  }
  return {
    find,
    async create(subject) {
      for (;;) {
        const known = await find(subject)
        if (known) return known
        const key = Buffer.from(createRandomBytes(keyBytes)).toString('base64')
        await records().put(subjectKind, subject, { key }, 0)
      }
    },
  }
}
