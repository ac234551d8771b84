import { z } from 'zod'
import { isKeyProvider, type KeyProvider } from '../check/encryption-keys.ts'

export const encryption = z
  .union(
    [
      z.custom<KeyProvider>(isKeyProvider),
      z.strictObject({
        keys: z.record(z.string(), z.union([z.string(), z.instanceof(Uint8Array)])),
        current: z.string(),
      }),
    ],
    'must be an object with keys and current, or a key provider with current() and get()',
  )
  .optional()
  .describe('Encrypts payloads and headers before they reach the store.')
