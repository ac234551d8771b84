import { describe, expect, it } from 'vitest'
import type { Powers } from '../../../src/store.ts'
import { storeContract } from '../../../src/testing/index.ts'

const least: Powers = {
  kind: 'least',
  durable: false,
  shared: false,
  search: 'none',
  wakeups: 'none',
}
const most: Powers = {
  kind: 'most',
  durable: true,
  shared: true,
  search: 'substring',
  wakeups: 'all',
}

describe('storeContract', () => {
  it('names each check once', () => {
    const names = storeContract.map(({ topic, title }) => `${topic}: ${title}`)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  it('has titles in the present tense', () => {
    const wishes = storeContract.filter(({ title }) => /\b(should|must|will)\b/.test(title))
    expect(wishes).toEqual([])
  })

  it('covers every topic of the contract', () => {
    expect([...new Set(storeContract.map(({ topic }) => topic))]).toEqual([
      'lifecycle',
      'add',
      'dedupe',
      'capacity',
      'find',
      'tally',
      'totals',
      'claim',
      'lanes',
      'dependencies',
      'renew',
      'apply',
      'applyAll',
      'remove',
      'keep',
      'records',
      'payloads',
      'watch',
    ])
  })

  it('gives a reason for every check that a store may skip', () => {
    const skipped = storeContract.filter(({ needs }) => needs?.(least) !== undefined)
    expect(skipped.length).toBeGreaterThan(0)
    for (const { needs } of storeContract) {
      expect(needs?.(most)).toBeUndefined()
      expect(needs?.(least) ?? 'none').not.toBe('')
    }
  })
})
