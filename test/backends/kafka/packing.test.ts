import { describe, expect, it } from 'vitest'
import type { Stored } from '../../../src/backends/kafka/record.ts'
import { copyOf, openedOf } from '../../../src/backends/kafka/packing.ts'

const stored: Stored = {
  topic: 'work',
  partition: 0,
  offset: 7,
  timestampMs: 1000,
  key: undefined,
  value: Buffer.from('body'),
  headers: [],
}
const openedWith = (said: object): ReturnType<typeof openedOf> =>
  openedOf({
    ...stored,
    headers: [[Buffer.from('redrive'), Buffer.from(JSON.stringify(said))]],
  })

describe('a record that says it is ours', () => {
  it('is believed when what it says makes sense', () => {
    expect(openedWith({ id: 'a', type: 't', deliveries: 2, failures: 1 })).toMatchObject({
      id: 'a',
      deliveries: 2,
      failures: 1,
    })
  })

  it.each(['deliveries', 'failures', 'enqueuedMs', 'firstReceivedMs', 'notBeforeMs'])(
    'is not believed when %s is no whole number',
    (field) => {
      for (const value of [0.5, -1, 1e300, '1', null])
        expect(openedWith({ id: 'a', type: 't', [field]: value })).toMatchObject({
          id: 'work:0:7',
          deliveries: 0,
          enqueuedMs: 1000,
        })
    },
  )
})

describe('the copy of a record', () => {
  it('has the headers of the record as they were, and no value where there was none', () => {
    const headers = [
      [Buffer.from('twice'), Buffer.from('one')],
      [Buffer.from('none'), null],
      [Buffer.from('twice'), Buffer.from('two')],
      [Buffer.from('empty'), Buffer.alloc(0)],
      [Buffer.from('__proto__'), Buffer.from('x')],
    ] as const
    const record = { ...stored, headers, value: Buffer.alloc(0), isNull: true } as const
    const opened = openedOf(record)
    expect(opened.headers).toEqual({ twice: 'one, two', none: '', empty: '', ['__proto__']: 'x' })
    const copy = copyOf(record, opened, opened)
    expect(copy.value).toBe(null)
    expect([...copy.headers].filter(([name]) => name.toString() !== 'redrive')).toEqual(headers)
  })

  it('keeps a header of another sender that is called like ours', () => {
    const headers = [[Buffer.from('redrive'), Buffer.from('theirs')]] as const
    const record = { ...stored, headers }
    const opened = openedOf(record)
    expect(opened.headers).toEqual({ redrive: 'theirs' })
    const { headers: copied } = copyOf(record, opened, opened)
    expect(openedOf({ ...stored, headers: [...copied] }).headers).toEqual({ redrive: 'theirs' })
  })

  it.each([0, 1.8e12, 1.8e18, Number.MAX_VALUE])(
    'remembers what it should, though the record is of %s ms',
    (timestampMs) => {
      const opened = openedOf({ ...stored, timestampMs })
      const memory = { ...opened, deliveries: 3, failures: 2, notBeforeMs: 5000 }
      const { deliveries, failures, enqueuedMs, notBeforeMs } = memory
      const kept = { deliveries, failures, enqueuedMs, notBeforeMs }
      const { value, headers } = copyOf(stored, opened, kept)
      const copy = { ...stored, offset: 8, value: value!, headers: [...headers] }
      expect(openedOf(copy)).toMatchObject({
        id: opened.id,
        ...kept,
      })
    },
  )
})
