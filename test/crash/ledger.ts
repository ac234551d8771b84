import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Action } from '../../src/letter/letter.ts'
import type { ApplyResult } from '../../src/store.ts'
import type { ReportedEvent } from './timeline.ts'
import type { Plan } from './plan.ts'
import type { ServerFaultKind, CutKind } from './storm.ts'

/**
 * What each process observed: one file per process, one synchronous write per line, so that a
 * written line survives `kill -9`. A `try` without its `ok` or `fail` is an unknown outcome: the
 * verifier treats it as neither.
 */
export type Fact =
  | { e: 'ready' }
  | { e: 'open.fail'; code: string }
  | { e: 'capture.try'; id: string; sha: string; plan: Plan }
  | { e: 'capture.ok'; id: string }
  | { e: 'capture.fail'; id: string; code: string }
  | { e: 'claim.ok'; since: ClockReading; claims: ClaimFact[] }
  | { e: 'renew.ok'; since: ClockReading; renewals: { id: string; epoch: number; kept: boolean }[] }
  | { e: 'apply.try'; n: number; changes: ChangeFact[] }
  | { e: 'apply.ok'; n: number; results: ApplyResult[] }
  | { e: 'apply.fail'; n: number; code: string }
  | { e: 'run.start'; id: string; epoch: number; attempt: number }
  | { e: 'run.end'; id: string; epoch: number; ok: boolean; aborted: boolean }
  | { e: 'settled'; id: string; epoch: number; as: ReportedEvent }
  | { e: 'lease.lost'; id: string; epoch: number }
  | { e: 'self.kill'; id: string; epoch: number; how: string }
  | { e: 'self.stop'; id: string; epoch: number; point: StopPoint }
  | { e: 'error'; during: string; code: string; error: string }
  | { e: 'spawn' | 'kill' | 'pause' | 'resume' | 'restart' | 'dismiss' | 'hung'; of: string }
  | { e: 'exit'; of: string; code: number | null; signal: string | null; asked: boolean }
  | { e: 'late.resume'; of: string; id: string; epoch: number }
  /** Proxies by the number of their process. */
  | { e: 'cut'; kind: CutKind; proxies: number[] }
  | { e: 'server.down'; kind: ServerFaultKind }
  | { e: 'server.up' }
  | { e: 'phase'; name: 'chaos' | 'heal' | 'frozen' }

export interface ClaimFact {
  id: string
  epoch: number
  retries: number
  /** Wall time in milliseconds, as the store wrote it. */
  expiresMs: number
}

export interface ChangeFact {
  id: string
  /** Undefined for a change that is guarded by version. */
  epoch?: number
  action: Action
}

/**
 * Where a worker stops itself: when its handler starts (`signal`: and then waits for its signal),
 * or before its settle.
 */
export type StopPoint = 'start' | 'signal' | 'settle'

/**
 * Monotonic milliseconds (shared by all processes of a machine) and wall milliseconds (used by
 * leases).
 */
export interface ClockReading {
  t: number
  w: number
}

export type Line = Fact & ClockReading & { p: string }
export type LineOf<E extends Fact['e']> = Extract<Line, { e: E }>

export function readClocks(): ClockReading {
  return { t: Number(process.hrtime.bigint()) / 1e6, w: Date.now() }
}

export interface Ledger {
  write(fact: Fact): void
}

export function openLedger(dir: string, name: string): Ledger {
  const fd = openSync(ledgerPath(dir, name), 'a')
  return {
    write: (fact) =>
      void writeSync(fd, `${JSON.stringify({ ...readClocks(), p: name, ...fact })}\n`),
  }
}

export function ledgerPath(dir: string, name: string): string {
  return join(dir, `${name}.jsonl`)
}

/** All lines of all processes, in the order in which they were written. */
export function readLedgers(dir: string): Line[] {
  const files = readdirSync(dir).filter((file) => file.endsWith('.jsonl'))
  const lines = files.flatMap((file) => parseLines(readFileSync(join(dir, file), 'utf8')))
  return lines.sort((a, b) => a.t - b.t)
}

/** A kill can leave at most one torn line at the end of a file; it is ignored. */
export function parseLines(text: string): Line[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

/** Follows the ledger of a running process: each `read` returns the lines since the last one. */
export interface Tail {
  read(): Line[]
  close(): void
}

export function tailLedger(dir: string, name: string): Tail {
  const fd = openSync(ledgerPath(dir, name), 'a+')
  let offset = 0
  let rest = ''
  let open = true
  return {
    read() {
      const size = open ? fstatSync(fd).size - offset : 0
      if (size <= 0) return []
      const bytes = Buffer.alloc(size)
      offset += readSync(fd, bytes, 0, size, offset)
      const text = rest + bytes.toString()
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      return parseLines(text.slice(0, end))
    },
    close() {
      if (open) closeSync(fd)
      open = false
    },
  }
}
