import { describe, expect, it } from 'vitest'
import { ByNumber } from '../../src/clock/by-number.ts'

describe('what comes and goes by number', () => {
  it('is there under its number until it is taken', () => {
    const all = new ByNumber<string>()
    const [a, b] = [all.next(), all.next()]
    all.set(a, 'a')
    all.set(b, 'b')
    all.set(b, 'b again')
    expect([all.size, all.get(a), all.values(), all.numbers()]).toEqual([
      2,
      'a',
      ['a', 'b again'],
      [a, b],
    ])
    expect([all.take(a), all.take(a), all.get(a), all.size]).toEqual(['a', undefined, undefined, 1])
  })

  it('has a number of its own, also when it stays for long', () => {
    const all = new ByNumber<string>()
    const stays = all.next()
    all.set(stays, 'stays')
    for (let n = 0; n < 1000; n++) {
      const number = all.next()
      expect(number).not.toBe(stays)
      all.set(number, 'goes')
      all.take(number)
    }
    expect(all.values()).toEqual(['stays'])
  })
})
