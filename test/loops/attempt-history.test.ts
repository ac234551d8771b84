import { expect, it } from 'vitest'
import type { Failure } from '../../src/letter/letter.ts'
import { AttemptHistory } from '../../src/loops/attempt-history.ts'

const failure = (message: string): Failure => ({
  name: 'Error',
  message,
  causes: [],
  at: '2026-01-01T00:00:00.000Z',
})

it('keeps the last ten failures of a message, each with a bounded message', () => {
  const history = new AttemptHistory()
  for (let n = 1; n <= 11; n++) history.add('m', failure(`${n} ${'x'.repeat(1000)}`))
  const attempts = history.add('m', failure('12'))
  expect(attempts).toHaveLength(10)
  expect(attempts[0]?.error.slice(0, 2)).toBe('3 ')
  expect(attempts[0]?.error).toHaveLength(500)
  expect(history.countOf('m')).toBe(12)
  history.forget('m')
  expect(history.countOf('m')).toBe(0)
  expect(history.add('m', failure('again'))).toHaveLength(1)
})

it('forgets the message that failed longest ago above a thousand messages', () => {
  const history = new AttemptHistory()
  for (let n = 0; n < 1000; n++) history.add(`m-${n}`, failure('x'))
  history.add('m-0', failure('x'))
  history.add('new', failure('x'))
  expect(history.add('m-0', failure('x'))).toHaveLength(3)
  expect(history.add('m-1', failure('x'))).toHaveLength(1)
  expect(history.countOf('m-1')).toBe(2)
})

it('counts deliveries that do not count apart from failures', () => {
  const history = new AttemptHistory()
  history.addUncounted('m')
  history.addUncounted('m')
  expect(history.uncountedOf('m')).toBe(2)
  expect(history.countOf('m')).toBe(0)
  history.forget('m')
  expect(history.uncountedOf('m')).toBe(0)
})
