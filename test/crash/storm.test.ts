import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Mode, Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import { chance } from './chance.ts'
import type { Fact } from './ledger.ts'
import type { Phase } from './phases.ts'
import { cutConnections, cutKinds, disruptServer } from './storm.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const runMs = 60_000

/** Proxies and a server that record their faults, and settings for a minute of faults. */
function createSettings(phase: Phase) {
  const modes: Mode[][] = [[], [], []]
  const proxies = modes.map((seen) => ({ set: async (mode: Mode) => void seen.push(mode) }))
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
    proxies: proxies as unknown as Proxy[],
    server: server as unknown as PrivateServer,
    dice: chance(3),
    leaseMs: 350,
    untilMs: performance.now() + runMs,
    phase: () => phase,
    ledger: { write: (fact: Fact) => void facts.push(fact) },
  }
  return { modes, done, facts, settings }
}

async function runThrough<T>(storm: Promise<T>): Promise<void> {
  await vi.advanceTimersByTimeAsync(2 * runMs)
  await storm
}

describe('a storm of faults', () => {
  it('cuts connections in every way, records each cut, and heals all of them', async () => {
    const { modes, facts, settings } = createSettings('server')
    await runThrough(cutConnections(settings))
    const recorded = facts.flatMap((fact) => (fact.e === 'cut' ? [fact] : []))
    expect(new Set(recorded.map(({ kind }) => kind))).toEqual(new Set(cutKinds))
    for (const [number, seen] of modes.entries()) {
      const cuts = seen.filter((mode) => mode !== 'pass')
      expect(cuts).toHaveLength(recorded.filter(({ proxies }) => proxies.includes(number)).length)
      expect(cuts.length).toBeGreaterThan(0)
      expect(seen.filter((_, index) => index % 2 === 1)).toEqual(cuts.map(() => 'pass'))
    }
  })

  it('stops and freezes the server in turn, and leaves it running', async () => {
    const { done, facts, settings } = createSettings('processes')
    await runThrough(disruptServer(settings))
    const round = ['kill9', 'start', 'stop immediate', 'start', 'pause', 'resume']
    expect(done.slice(0, 6)).toEqual(round)
    expect(done.length % 2).toBe(0)
    expect(facts.at(-1)).toEqual({ e: 'server.up' })
  })

  it('does nothing in quiet times or without a private server', async () => {
    const { modes, done, settings } = createSettings('quiet')
    await runThrough(Promise.all([cutConnections(settings), disruptServer(settings)]))
    const { server: _server, ...foreign } = { ...settings, phase: (): Phase => 'server' }
    await runThrough(disruptServer({ ...foreign, untilMs: performance.now() + runMs }))
    expect(modes.flat()).toEqual([])
    expect(done).toEqual([])
  })
})
