import { z } from 'zod'
import { orders } from '../../letter/query.ts'
import { filterSchema, timestamp } from './filter.ts'
import { contentHidden } from './letter.ts'

/** A field of a letter, or a value inside one. */
const column = z
  .string()
  .max(100)
  .regex(/^[a-z]\w*(\.[\w-]+)*$/i, 'must be a field of a letter, such as queue or metadata.order')

/** What a person saves. */
export const savedViewShape = {
  name: z.string().trim().min(1).max(100),
  filter: filterSchema.describe('It is applied within the scope of whoever uses the view.'),
  order: z.enum(orders).exactOptional().describe('Default: newest.'),
  columns: z
    .array(column)
    .max(50)
    .exactOptional()
    .describe('Fields to show, such as queue or metadata.order. Default: those of the reader.'),
  shared: z.boolean().default(false).describe('False: only its owner sees the view.'),
}

/** A list of letters that a person has saved under a name. */
export const savedView = z
  .strictObject({
    id: z.string(),
    ...savedViewShape,
    owner: z.string().describe('The name of the caller who created the view.'),
    version: z.int().positive().describe('It grows with every change, and is the ETag.'),
    createdAt: timestamp,
    changedAt: timestamp,
    hidden: contentHidden,
  })
  .meta({ id: 'SavedView' })
export type SavedView = z.infer<typeof savedView>
export type SavedViewInput = Pick<SavedView, keyof typeof savedViewShape>
