import { describe, expect, it } from 'vitest'
import { recordsOf } from '../../../src/stores/spool/segment.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'

const task = { id: 'J1', description: 'd', source: 's' }

describe('recordsOf', () => {
  it('writes what can be read again', () => {
    expect(recordsOf([aLetter({ task })]).length).toBeGreaterThan(0)
  })

  it('writes nothing that could only be set aside, and says why', () => {
    const assigned = { ...task, assignee: 'mia' }
    const wider = aLetter({ task: assigned })
    expect(() => recordsOf([aLetter(), wider])).toThrow(/task: .*assignee/)
  })
})
