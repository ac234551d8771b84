import { z } from 'zod'
import { endpoint, streamEndpoint } from '../endpoint.ts'
import { filterShape, reveal } from '../schemas/filter.ts'
import { anyJson } from '../schemas/letter.ts'
import { importReport } from '../schemas/transfer.ts'

const tag = 'Transfer'

export const transferEndpoints = {
  exportLetters: streamEndpoint({
    method: 'GET',
    path: '/api/export',
    tag,
    summary:
      'Exports letters with all their data, the oldest first: a header, a line for each letter, and a footer.',
    permission: 'payload:read',
    bounds: 'filter',
    input: z.strictObject({
      ...filterShape,
      after: z.string().max(200).optional().describe('The id of the last letter that is there.'),
      reveal,
    }),
    output: anyJson,
    stream: 'lines',
  }),
  importLetters: endpoint({
    method: 'POST',
    path: '/api/import',
    tag,
    summary: 'Imports the lines of an export. Letters that the store has in this version stay.',
    permission: 'admin',
    bounds: 'all',
    body: 'lines',
    line: anyJson,
    input: z.strictObject({
      skipDamaged: z.boolean().optional().describe('True: damaged lines are skipped and listed.'),
      verifyOnly: z.boolean().optional().describe('True: the lines are only checked.'),
    }),
    output: importReport,
  }),
}
