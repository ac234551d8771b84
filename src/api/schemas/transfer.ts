import { z } from 'zod'

const count = z.int().nonnegative()

function listing<T extends z.core.$ZodType>(
  item: T,
): z.ZodObject<{ first: z.ZodArray<T>; count: z.ZodInt }> {
  return z.strictObject({ first: z.array(item), count: z.int() })
}

/** What an import did. */
export const importReport = z.strictObject({
  complete: z.boolean().describe('True: the end of the export was reached.'),
  letters: count.describe('Letters that were read.'),
  added: count,
  existing: count.describe('Letters that the store has in the same version or a higher one.'),
  damaged: listing(z.strictObject({ id: z.string(), why: z.string() })),
  problems: listing(z.string()).describe('Lines that were skipped.'),
})
