import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkSchema, formatIssues } from '../../src/check/issues.ts'
import type { SchemaNode } from '../../src/check/schema-node.ts'

const aFunction = z.custom((value) => typeof value === 'function', 'must be a function')
const schema = z.strictObject({
  retries: z.int().min(0).max(9).optional(),
  share: z.number().gt(0).optional(),
  name: z.string().min(1).optional(),
  level: z.enum(['low', 'high']).optional(),
  tags: z.array(z.string()).min(1).optional(),
  handler: aFunction.optional(),
  byName: z.record(z.string().max(3), z.boolean()).optional(),
  breaker: z.union([z.literal(false), z.strictObject({ failures: z.int() })]).optional(),
  secret: z
    .union([z.strictObject({ env: z.string() }), z.strictObject({ file: z.string() })])
    .optional(),
  backoff: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('fixed'), delayMs: z.number() }),
      z.strictObject({ kind: z.literal('linear'), stepMs: z.number() }),
    ])
    .optional(),
})
const check = (value: object): void =>
  checkSchema(schema, value, { thing: 'option', code: 'INVALID_CONFIG', renamed: { old: 'name' } })

describe('checkSchema', () => {
  it.each<[object, string]>([
    [{ retries: -1 }, 'option "retries" must be an integer from 0 to 9, got -1'],
    [{ share: 0 }, 'option "share" must be a number above 0, got 0'],
    [{ name: '' }, 'option "name" must be a non-empty string, got ""'],
    [{ name: new Map() }, 'option "name" must be a non-empty string, got a Map'],
    [{ level: 'hgih' }, 'option "level" must be low or high, got "hgih"; did you mean "high"?'],
    [{ tags: [] }, 'option "tags" must be a non-empty array, got an array'],
    [{ tags: [1] }, 'option "tags.0" must be a string, got 1'],
    [{ handler: 'x' }, 'option "handler" must be a function, got "x"'],
    [{ byName: { a: 'x' } }, 'option "byName.a" must be true or false, got "x"'],
    [{ byName: { long: true } }, 'option "byName.long" is not a valid name'],
    [{ breaker: true }, 'option "breaker" must be false, or an object with failures, got true'],
    [{ breaker: {} }, 'option "breaker.failures" is missing: it must be an integer'],
    [{ breaker: { failurs: 1 } }, 'option "breaker.failures" is missing'],
    [{ secret: { file: 5 } }, 'option "secret.file" must be a string, got 5'],
    [{ secret: { env: 'A', fil: 'b' } }, 'unknown option "secret.fil": did you mean "file"?'],
    [{ backoff: { kind: 'fixd' } }, 'option "backoff.kind" must be fixed, or linear, got "fixd"'],
    [
      { backoff: { kind: 'fixed', delayMs: 1, stepMs: 1 } },
      'option "backoff.stepMs" is not allowed with kind "fixed"',
    ],
    [{ nmae: 'a' }, 'unknown option "nmae": did you mean "name"?'],
    [{ colour: 'red' }, 'unknown option "colour": known: retries, share'],
    [{ old: 'a' }, 'unknown option "old": use name'],
    [[], 'options must be an object, got an array'],
  ])('rejects %j with its key, the allowed values and the value', (value, message) => {
    expect(() => check(value)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(message) as string,
      }) as Error,
    )
  })

  it('accepts keys that are undefined', () => {
    expect(() => check({ retries: undefined, unknown: undefined })).not.toThrow()
  })
})

describe('formatIssues', () => {
  it('reports every issue and hides secrets', () => {
    const value = { name: 5, secret: 'hunter2' }
    const issues = schema.safeParse(value).error?.issues ?? []
    const strings = formatIssues(issues, {
      schema: z.toJSONSchema(schema, { unrepresentable: 'any' }) as SchemaNode,
      value,
      isSecret: ([key]) => key === 'secret',
    }).map(({ path, text }) => `${path.join('.')} ${text}`)
    expect(strings).toEqual([
      'name must be a non-empty string, got 5',
      'secret must be an object with env, or an object with file, got a value that is not shown',
    ])
  })
})
