import { describe, expect, it } from 'vitest'
import { passThrough } from '../../src/stores/pass-through.ts'

class Counter {
  #count = 0
  step = 1
  get count(): number {
    return this.#count
  }
  add(): number {
    return (this.#count += this.step)
  }
}

describe('passThrough', () => {
  it('has the given members, and reads all others from the target', () => {
    const counter = new Counter()
    const front = passThrough(counter, { step: 7, twice: () => counter.add() + counter.add() })
    expect([front.add(), front.twice(), front.count, front.step]).toEqual([1, 5, 3, 7])
    counter.step = 10
    expect([front.add(), front.count]).toEqual([13, 13])
  })

  it('has exactly the members of both objects', () => {
    const front = passThrough(new Counter(), { twice: () => 2 })
    expect(['add', 'twice', 'thrice'].map((name) => name in front)).toEqual([true, true, false])
    expect((front as { thrice?: unknown }).thrice).toBeUndefined()
  })
})
