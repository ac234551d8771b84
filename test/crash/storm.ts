import type { Mode, Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import type { Chance } from './chance.ts'
import { pause } from './child.ts'
import type { Ledger } from './ledger.ts'
import type { Phase } from './phases.ts'

/** The ways in which a link between a process and the server is cut. */
const cuts = {
  /** Both sides hear nothing. What was said arrives when it is over, late. */
  half_open: 'blackhole',
  /** What was asked is done, and nobody hears of it. */
  replies_lost: 'drop replies',
  requests_lost: 'drop requests',
  reset: 'reset',
  /** A reply ends in its middle. */
  truncated: 'truncate',
} as const satisfies Record<string, Mode>

export type CutKind = keyof typeof cuts
export const cutKinds = Object.keys(cuts) as [CutKind, ...CutKind[]]

/** What happens to the server itself, in turn: `stop` is as sudden as its own words for it allow. */
const blowKinds = ['kill9', 'stop', 'freeze'] as const
export type BlowKind = (typeof blowKinds)[number]

export interface StormSettings {
  /** One link per process slot. */
  links: readonly Proxy[]
  /** A server that may be stopped, if it is ours. */
  server?: PrivateServer
  dice: Chance
  leaseMs: number
  untilMs: number
  phase: () => Phase
  ledger: Ledger
}

/** Cuts links while the server has its turn. All links are whole again when it ends. */
export async function cutAround(settings: StormSettings): Promise<void> {
  const { links, dice, untilMs, phase } = settings
  const healing = new Map<Proxy, Promise<void>>()
  while (performance.now() < untilMs) {
    await pause(dice.between(300, 1200))
    if (phase() !== 'server') continue
    const kind = dice.pick(cutKinds)
    const ms = howLong(kind, settings)
    const hit = victims(links, dice).filter((link) => !healing.has(link))
    if (hit.length === 0) continue
    settings.ledger.write({ e: 'cut', kind, links: hit.map((link) => links.indexOf(link)) })
    for (const link of hit)
      healing.set(
        link,
        cut(link, kind, ms).finally(() => healing.delete(link)),
      )
  }
  await Promise.all(healing.values())
}

async function cut(link: Proxy, kind: CutKind, ms: number): Promise<void> {
  await link.set(cuts[kind])
  await pause(ms)
  await link.set('pass')
}

/** From within a lease to several of them; what breaks a connection at once need not last. */
function howLong(kind: CutKind, { dice, leaseMs }: StormSettings): number {
  return kind === 'reset' || kind === 'truncated'
    ? dice.between(20, 200)
    : dice.between(0.5, 8) * leaseMs
}

/** Mostly one link, so that the others take over from it; now and then many or all. */
function victims(links: readonly Proxy[], dice: Chance): readonly Proxy[] {
  const roll = dice.next()
  if (roll < 0.05) return links
  if (roll < 0.25) return links.filter(() => dice.next() < 0.5)
  return [dice.pick(links)!]
}

/** Ends the server without warning, or freezes it, every few seconds. It is up again when this ends. */
export async function strikeServer(settings: StormSettings): Promise<void> {
  const { server, dice, leaseMs, untilMs, phase, ledger } = settings
  if (!server) return
  for (let blows = 0; performance.now() < untilMs;) {
    await pause(dice.between(2500, 5500))
    if (phase() === 'quiet' || performance.now() >= untilMs) continue
    const kind = blowKinds[blows++ % blowKinds.length]!
    ledger.write({ e: 'server.down', kind })
    if (kind === 'freeze') {
      server.pause()
      await pause(dice.between(0.5, 4) * leaseMs)
      server.resume()
    } else {
      await (kind === 'kill9' ? server.kill9() : server.stop('immediate'))
      await pause(dice.between(0, 2) * leaseMs)
      await server.start()
    }
    ledger.write({ e: 'server.up' })
  }
}
