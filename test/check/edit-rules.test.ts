import { describe, expect, it } from 'vitest'
import { whyEditRefused } from '../../src/check/edit-rules.ts'
import { whyInvalidSchema, whyUnfitPayload } from '../../src/check/payload-schema.ts'
import { encodePayload } from '../../src/letter/payload.ts'

const letter = { queue: 'mail', headers: { Auth: 'a', 'redrive-replays': '1', other: 'x' } }
const rules = { lockedHeaders: ['auth', 'trace'] }
const { headers } = letter

const amounts = {
  type: 'object',
  properties: { amount: { type: 'number', minimum: 0 }, to: { type: 'string', format: 'email' } },
  required: ['amount'],
  additionalProperties: false,
}

describe('whyEditRefused', () => {
  it.each<[string, Record<string, string>, string | undefined]>([
    ['the same headers', { ...headers }, undefined],
    ['another header', { ...headers, other: 'y', more: 'z' }, undefined],
    ['a locked header with another value', { ...headers, Auth: 'b' }, 'header "Auth" is locked'],
    ['no locked header', { 'redrive-replays': '1' }, 'header "Auth" is locked in queue mail'],
    ['another case of a locked name', { ...headers, AUTH: 'a' }, 'header "AUTH" is locked'],
    ['a new locked header', { ...headers, Trace: 'a' }, 'header "Trace" is locked'],
    ['other lineage', { ...headers, 'redrive-replays': '0' }, '"redrive-replays" is locked'],
    ['new lineage', { ...headers, 'Redrive-Original-Id': '0' }, '"Redrive-Original-Id" is locked'],
  ])('of an edit with %s', (_name, given, why) => {
    const refusal = whyEditRefused(letter, { headers: given }, rules)
    if (why === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(why)
  })

  it('leaves edits of other fields alone', () => {
    expect(whyEditRefused(letter, { tags: ['a'], metadata: {} }, rules)).toBeUndefined()
  })

  it.each<[string, unknown, string | undefined]>([
    ['a payload that fits', { amount: 1, to: 'not checked' }, undefined],
    ['a wrong type', { amount: '1' }, '/amount must be number (rule type)'],
    ['a number out of range', { amount: -1 }, '/amount must be >= 0 (rule minimum)'],
    ['a missing key', {}, "the document must have required property 'amount' (rule required)"],
    ['an unknown key', { amount: 1, x: 1 }, '(rule additionalProperties)'],
    ['bytes', new Uint8Array([1]), 'it is application/octet-stream, not JSON'],
    ['a JS value', { amount: 1n }, 'not JSON'],
  ])('of an edit with %s', (_name, given, why) => {
    const edit = { payload: encodePayload(given) }
    const refusal = whyEditRefused(letter, edit, { ...rules, payloadSchema: amounts })
    if (why === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(why)
  })
})

describe('payloadSchema', () => {
  it('reads draft 2020-12, and draft 7 if $schema names it', () => {
    const pair = encodePayload(['a', 1])
    const recent = { prefixItems: [{ type: 'string' }, { type: 'string' }] }
    expect(whyUnfitPayload(pair, recent)).toBe('/1 must be string (rule type)')
    const draft7 = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      items: [{ type: 'string' }, { type: 'string' }],
    }
    expect(whyUnfitPayload(pair, draft7)).toBe('/1 must be string (rule type)')
  })

  it('reports broken JSON', () => {
    expect(whyUnfitPayload(encodePayload('{', 'application/json'), amounts)).toBe(
      'the payload is not valid JSON',
    )
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['a misspelled keyword', { typ: 'object' }, 'unknown keyword: "typ"'],
    ['a wrong value', { type: 'objct' }, 'type'],
    ['a reference to nothing', { $ref: '#/$defs/none' }, "can't resolve reference"],
    ['a schema of the network', { $ref: 'https://example.com/a.json' }, "can't resolve reference"],
    ['an asynchronous schema', { $async: true }, '$async is not supported'],
  ])('is checked for %s', (_name, schema, why) => {
    expect(whyInvalidSchema(schema)).toContain(why)
  })

  it('may use one $id in two queues', () => {
    const schema = { $id: 'order', type: 'object' }
    expect([whyInvalidSchema(schema), whyInvalidSchema({ ...schema })]).toEqual([
      undefined,
      undefined,
    ])
  })
})
