import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { sourceIdOf } from '../../src/letter/source-id.ts'

type Sourced = Pick<DeadLetter, 'source' | 'task'>

const task = { id: 'task-7', description: '', source: 'tracker' }
const pipeline = {
  kind: 'pipeline',
  cluster: 'c',
  node: 'n',
  topic: 't',
  partition: 0,
  offset: '0',
  hops: 0,
} as const

describe('sourceIdOf', () => {
  const cases: [Sourced, string | undefined][] = [
    [{ source: { kind: 'workflow', name: 'w', taskId: 'wf_1', targets: [] }, task }, 'wf_1'],
    [{ source: { kind: 'mailbox', mailbox: 'm', messageId: 'm-1', deliveries: 1 } }, 'm-1'],
    [{ source: { ...pipeline, streamId: 's-1' } }, 's-1'],
    [{ source: { kind: 'operation', type: 'a' }, task }, 'task-7'],
    [{ source: { kind: 'operation', type: 'a' } }, undefined],
    [{ source: { kind: 'workflow', name: 'w', taskId: '', targets: [] } }, undefined],
    [{ source: { kind: 'mailbox', mailbox: 'm', messageId: 'a\ud800', deliveries: 1 } }, 'a\ufffd'],
  ]

  it.each(cases)('returns for %j: %j', (letter, id) => {
    expect(sourceIdOf(letter)).toBe(id)
  })
})
