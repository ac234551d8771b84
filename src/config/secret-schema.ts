import { z } from 'zod'

/** Where a secret is read from. The configuration file itself never contains one. */
export const secret = z.union([
  z.strictObject({
    env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
      .describe('Name of an environment variable.'),
  }),
  z.strictObject({ file: z.string().min(1).describe('Path of a file.') }),
])
