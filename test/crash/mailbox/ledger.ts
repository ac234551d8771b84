import { fsyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { readClocks, type Fact as StoreFact, type ClockReading } from '../ledger.ts'
import type { Failpoint, Plan } from './plan.ts'

/**
 * What each process observed: one file per process, appended and synced line by line, so that a
 * written line survives `kill -9`. A `try` without its `ok` is an unknown outcome: the verifier
 * treats it as neither.
 */
export type Fact =
  | { e: 'ready' }
  | { e: 'send.try'; id: string; sha: string; plan: Plan }
  | { e: 'send.ok'; id: string }
  | { e: 'send.fail'; id: string; code: string }
  | ({ e: 'received'; failures: number } & OfDelivery)
  /** Start and end of the handler. */
  | ({ e: 'started'; failures: number } & OfDelivery)
  | ({ e: 'processed'; sha: string } & OfDelivery)
  /** Also written when the reply failed. */
  | ({ e: 'failed' } & OfDelivery)
  /** Aborted because the loop stops. */
  | ({ e: 'stopped' } & OfDelivery)
  /** `since`: just before the last successful check that the delivery is still ours. */
  | ({ e: 'keep.try'; since?: number } & OfDelivery)
  | ({ e: 'keep.ok' } & OfDelivery)
  | ({ e: 'keep.fail'; code: string } & OfDelivery)
  | ({ e: 'acked' } & OfDelivery)
  /** Released without a run, so that the next delivery may have its number. */
  | ({ e: 'release.try' } & OfDelivery)
  | ({ e: 'fault' } & Failpoint & { id: string })
  | { e: 'error'; during: string; code: string }
  | { e: 'open.fail'; code: string }
  | { e: 'spawn' | 'kill' | 'pause' | 'resume' | 'restart' | 'dismiss' | 'hung'; of: string }
  | { e: 'exit'; of: string; code: number | null; signal: string | null }
  | { e: 'phase'; name: 'chaos' | 'heal' | 'frozen' }
  | Extract<StoreFact, { e: 'cut' | 'server.down' | 'server.up' }>

interface OfDelivery {
  id: string
  deliveries: number
}

export type Line = Fact & ClockReading & { p: string }

export interface Ledger {
  write(fact: Fact): void
}

export function openLedger(dir: string, name: string): Ledger {
  const fd = openSync(join(dir, `${name}.jsonl`), 'a')
  return {
    write(fact) {
      writeSync(fd, `${JSON.stringify({ ...readClocks(), p: name, ...fact })}\n`)
      fsyncSync(fd)
    },
  }
}

/**
 * All lines of all processes, in the order in which they were written. A torn last line is ignored.
 */
export function readLedgers(dir: string): Line[] {
  const files = readdirSync(dir).filter((file) => file.endsWith('.jsonl'))
  const lines = files.flatMap((file) => {
    const text = readFileSync(join(dir, file), 'utf8')
    const whole = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
    return whole.filter((line) => line !== '').map((line) => JSON.parse(line) as Line)
  })
  return lines.sort((a, b) => a.t - b.t)
}
