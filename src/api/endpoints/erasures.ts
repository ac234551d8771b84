import { z } from 'zod'
import { endpoint } from '../endpoint.ts'

export const erasureEndpoints = {
  eraseSubject: endpoint({
    method: 'POST',
    path: '/api/erasures',
    tag: 'Privacy',
    summary: 'Erases the content of all letters about a data subject, for good.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({
      subject: z.string().min(1).max(1000).describe('The data subject, as at capture.'),
      reason: z.string().min(1).max(1000).describe('Why, without the name of the subject.'),
    }),
    output: z.strictObject({
      subject: z.string().describe('A keyed hash of the subject, as in the audit log.'),
      letters: z.int().nonnegative().describe('Letters whose content was erased.'),
      skipped: z.int().nonnegative().describe('Letters that run now. Erase the subject again.'),
    }),
  }),
}
