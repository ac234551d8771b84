import type { Mode, Proxy } from '../faults/proxy.ts'
import type { PrivateServer } from '../servers/control.ts'
import type { Chance } from './chance.ts'
import { pause } from './child.ts'
import type { Ledger } from './ledger.ts'
import type { Phase } from './phases.ts'

/** Ways to cut the connection between a process and the server. */
const cuts = {
  /** Both sides receive nothing. The data arrives late, when the cut is over. */
  half_open: 'blackhole',
  /** Requests are executed, but their replies are lost. */
  replies_lost: 'drop replies',
  requests_lost: 'drop requests',
  reset: 'reset',
  /** A reply ends in its middle. */
  truncated: 'truncate',
} as const satisfies Record<string, Mode>

export type CutKind = keyof typeof cuts
export const cutKinds = Object.keys(cuts) as [CutKind, ...CutKind[]]

/** Faults of the server, in turn. `stop` is its fastest own shutdown. */
const serverFaultKinds = ['kill9', 'stop', 'freeze'] as const
export type ServerFaultKind = (typeof serverFaultKinds)[number]

export interface StormSettings {
  /** One proxy per process slot. */
  proxies: readonly Proxy[]
  /** A private server, which may be stopped. */
  server?: PrivateServer
  dice: Chance
  leaseMs: number
  untilMs: number
  phase: () => Phase
  ledger: Ledger
}

/** Cuts connections in the server phase. All of them are healed when it resolves. */
export async function cutConnections(settings: StormSettings): Promise<void> {
  const { proxies, dice, untilMs, phase } = settings
  const healing = new Map<Proxy, Promise<void>>()
  while (performance.now() < untilMs) {
    await pause(dice.between(300, 1200))
    if (phase() !== 'server') continue
    const kind = dice.pick(cutKinds)
    const ms = chooseDuration(kind, settings)
    const hit = chooseVictims(proxies, dice).filter((proxy) => !healing.has(proxy))
    if (hit.length === 0) continue
    settings.ledger.write({ e: 'cut', kind, proxies: hit.map((proxy) => proxies.indexOf(proxy)) })
    for (const proxy of hit)
      healing.set(
        proxy,
        cut(proxy, kind, ms).finally(() => healing.delete(proxy)),
      )
  }
  await Promise.all(healing.values())
}

async function cut(proxy: Proxy, kind: CutKind, ms: number): Promise<void> {
  await proxy.set(cuts[kind])
  await pause(ms)
  await proxy.set('pass')
}

/** From a part of a lease to several leases; cuts that break a connection at once are short. */
function chooseDuration(kind: CutKind, { dice, leaseMs }: StormSettings): number {
  return kind === 'reset' || kind === 'truncated'
    ? dice.between(20, 200)
    : dice.between(0.5, 8) * leaseMs
}

/** Mostly one connection, so that other processes take over; sometimes many or all. */
function chooseVictims(proxies: readonly Proxy[], dice: Chance): readonly Proxy[] {
  const roll = dice.next()
  if (roll < 0.05) return proxies
  if (roll < 0.25) return proxies.filter(() => dice.next() < 0.5)
  return [dice.pick(proxies)!]
}

/** Kills, stops or freezes the server every few seconds. It is running again when this resolves. */
export async function disruptServer(settings: StormSettings): Promise<void> {
  const { server, dice, leaseMs, untilMs, phase, ledger } = settings
  if (!server) return
  for (let faults = 0; performance.now() < untilMs;) {
    await pause(dice.between(2500, 5500))
    if (phase() === 'quiet' || performance.now() >= untilMs) continue
    const kind = serverFaultKinds[faults++ % serverFaultKinds.length]!
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
