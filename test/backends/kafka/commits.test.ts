import { describe, expect, it } from 'vitest'
import { Commits } from '../../../src/backends/kafka/commits.ts'

const [a, b] = [{ topic: 'a' }, { topic: 'b' }] as const

describe('Commits', () => {
  it('sends one at a time, and whoever asks meanwhile shares the next', async () => {
    const sent: string[][] = []
    const gates: PromiseWithResolvers<void>[] = []
    const commits = new Commits<{ topic: string }>(async (parts) => {
      sent.push([...parts].map(({ topic }) => topic))
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
    })
    const first = commits.ask([a])
    await expect.poll(() => sent).toEqual([['a']])
    const rest = [commits.ask([b]), commits.ask([a]), commits.ask([b])]
    gates[0]!.resolve()
    await first
    await expect.poll(() => sent).toEqual([['a'], ['b', 'a']])
    gates[1]!.resolve()
    await Promise.all(rest)
    await commits.idle()
    expect(sent.length).toBe(2)
  })

  it('fails those who share a commit, and goes on with the next', async () => {
    let isBroken = true
    const commits = new Commits(async () => {
      if (isBroken) throw new Error('away')
    })
    const outcomes = await Promise.allSettled([commits.ask([a]), commits.ask([b])])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    isBroken = false
    await commits.ask([a])
  })
})
