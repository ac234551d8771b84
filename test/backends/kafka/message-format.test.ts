import { describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { copyRecord, decodeMessage } from '../../../src/backends/kafka/message-format.ts'

const stored: StoredRecord = {
  topic: 'work',
  partition: 0,
  offset: 7,
  timestampMs: 1000,
  key: undefined,
  value: Buffer.from('body'),
  headers: [],
}
const decodeWith = (properties: object): ReturnType<typeof decodeMessage> =>
  decodeMessage({
    ...stored,
    headers: [[Buffer.from('redrive'), Buffer.from(JSON.stringify(properties))]],
  })

describe('decodeMessage', () => {
  it('uses the properties of a valid header of ours', () => {
    expect(decodeWith({ id: 'a', type: 't', deliveries: 2, failures: 1 })).toMatchObject({
      id: 'a',
      deliveries: 2,
      failures: 1,
    })
  })

  it.each(['deliveries', 'failures', 'enqueuedMs', 'firstReceivedMs', 'notBeforeMs'])(
    'ignores a header of ours whose %s is not a valid integer',
    (field) => {
      for (const value of [0.5, -1, 1e300, '1', null])
        expect(decodeWith({ id: 'a', type: 't', [field]: value })).toMatchObject({
          id: 'work:0:7',
          deliveries: 0,
          enqueuedMs: 1000,
        })
    },
  )
})

describe('copyRecord', () => {
  it('keeps headers as they were and a null value', () => {
    const headers = [
      [Buffer.from('twice'), Buffer.from('one')],
      [Buffer.from('none'), null],
      [Buffer.from('twice'), Buffer.from('two')],
      [Buffer.from('empty'), Buffer.alloc(0)],
      [Buffer.from('__proto__'), Buffer.from('x')],
    ] as const
    const record = { ...stored, headers, value: Buffer.alloc(0), isNull: true } as const
    const opened = decodeMessage(record)
    expect(opened.headers).toEqual({ twice: 'one, two', none: '', empty: '', ['__proto__']: 'x' })
    const copy = copyRecord(record, opened, opened)
    expect(copy.value).toBe(null)
    expect([...copy.headers].filter(([name]) => name.toString() !== 'redrive')).toEqual(headers)
  })

  it('keeps a header of another producer with the name of ours', () => {
    const headers = [[Buffer.from('redrive'), Buffer.from('theirs')]] as const
    const record = { ...stored, headers }
    const opened = decodeMessage(record)
    expect(opened.headers).toEqual({ redrive: 'theirs' })
    const { headers: copied } = copyRecord(record, opened, opened)
    expect(decodeMessage({ ...stored, headers: [...copied] }).headers).toEqual({
      redrive: 'theirs',
    })
  })

  it.each([0, 1.8e12, 1.8e18, Number.MAX_VALUE])(
    'stores the given state for a record with the timestamp %s',
    (timestampMs) => {
      const opened = decodeMessage({ ...stored, timestampMs })
      const memory = { ...opened, deliveries: 3, failures: 2, notBeforeMs: 5000 }
      const { deliveries, failures, enqueuedMs, notBeforeMs } = memory
      const kept = { deliveries, failures, enqueuedMs, notBeforeMs }
      const { value, headers } = copyRecord(stored, opened, kept)
      const copy = { ...stored, offset: 8, value: value!, headers: [...headers] }
      expect(decodeMessage(copy)).toMatchObject({
        id: opened.id,
        ...kept,
      })
    },
  )
})
