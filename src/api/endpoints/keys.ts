import { z } from 'zod'
import { streamEndpoint } from '../endpoint.ts'

const count = z.int().nonnegative()

/** What a rotation has done so far. */
const keyRotation = z.strictObject({
  current: z.string().describe('The id of the current key.'),
  checked: count.describe('Letters and records that were checked.'),
  rotated: count.describe('Encrypted with the current key now.'),
  skipped: count.describe(
    'In use by a worker, or changed meanwhile: the next rotation finds them.',
  ),
  failed: count.describe('They cannot be decrypted, and are unchanged.'),
  stopped: z.literal(true).exactOptional().describe('It ended early. Another one continues it.'),
})

export const keyEndpoints = {
  rotateKeys: streamEndpoint({
    method: 'POST',
    path: '/api/keys/rotate',
    tag: 'Encryption',
    summary:
      'Encrypts all letters with the current key. Each line is the progress, the last one the result. It stops when the client disconnects, and another call continues.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({}),
    output: keyRotation,
    stream: 'lines',
  }),
}
