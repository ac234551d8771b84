import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Mode, Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import { chance } from './chance.ts'
import type { Fact } from './ledger.ts'
import type { Phase } from './phases.ts'
import { cutAround, cutKinds, strikeServer } from './storm.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const runMs = 60_000

/** Links and a server that only remember what was done to them, and a minute of storm. */
function scene(phase: Phase) {
  const modes: Mode[][] = [[], [], []]
  const links = modes.map((seen) => ({ set: async (mode: Mode) => void seen.push(mode) }))
  const done: string[] = []
  const server = {
    kill9: async () => void done.push('kill9'),
    stop: async (mode?: string) => void done.push(`stop ${mode}`),
    start: async () => void done.push('start'),
    pause: () => void done.push('pause'),
    resume: () => void done.push('resume'),
  }
  const facts: Fact[] = []
  const settings = {
    links: links as unknown as Proxy[],
    server: server as unknown as PrivateServer,
    dice: chance(3),
    leaseMs: 350,
    untilMs: performance.now() + runMs,
    phase: () => phase,
    ledger: { write: (fact: Fact) => void facts.push(fact) },
  }
  return { modes, done, facts, settings }
}

async function through<T>(storm: Promise<T>): Promise<void> {
  await vi.advanceTimersByTimeAsync(2 * runMs)
  await storm
}

describe('a storm', () => {
  it('cuts links in every way, tells of each cut, and leaves all of them whole', async () => {
    const { modes, facts, settings } = scene('server')
    await through(cutAround(settings))
    const told = facts.flatMap((fact) => (fact.e === 'cut' ? [fact] : []))
    expect(new Set(told.map(({ kind }) => kind))).toEqual(new Set(cutKinds))
    for (const [number, seen] of modes.entries()) {
      const cuts = seen.filter((mode) => mode !== 'pass')
      expect(cuts).toHaveLength(told.filter(({ links }) => links.includes(number)).length)
      expect(cuts.length).toBeGreaterThan(0)
      expect(seen.filter((_, index) => index % 2 === 1)).toEqual(cuts.map(() => 'pass'))
    }
  })

  it('ends and freezes the server in turn, and leaves it up', async () => {
    const { done, facts, settings } = scene('processes')
    await through(strikeServer(settings))
    const round = ['kill9', 'start', 'stop immediate', 'start', 'pause', 'resume']
    expect(done.slice(0, 6)).toEqual(round)
    expect(done.length % 2).toBe(0)
    expect(facts.at(-1)).toEqual({ e: 'server.up' })
  })

  it('does nothing in quiet times, nor to a server of somebody else', async () => {
    const { modes, done, settings } = scene('quiet')
    await through(Promise.all([cutAround(settings), strikeServer(settings)]))
    const { server: _server, ...foreign } = { ...settings, phase: (): Phase => 'server' }
    await through(strikeServer({ ...foreign, untilMs: performance.now() + runMs }))
    expect(modes.flat()).toEqual([])
    expect(done).toEqual([])
  })
})
