import { spawn, type ChildProcess } from '../../processes.ts'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readStream } from '../../../src/pipeline/stream.ts'
import { unseal } from '../../../src/pipeline/dead/envelope.ts'
import { pipelineBench, streamOf, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { privateKafka } from '../../servers/private.ts'
import { chance, type Chance } from '../chance.ts'
import {
  idOf,
  maxDeliveries,
  planOf,
  type BugName,
  type ChildSettings,
  type RecordCounts,
} from './plan.ts'

export interface SoakSettings extends RecordCounts {
  consumers: number
  seed: number
  /** Duration of the module. */
  workMs: number
  transactional: boolean
  /** How often the broker is killed and started again. */
  restarts: number
  /** The run is stuck when the group has committed nothing new for this many seconds. */
  limitSeconds: number
  bug?: BugName
  log?: (line: string) => void
}

/** Outcome of all records. The counts up to `stuck` must be 0. */
export interface Verdict {
  /** Committed by the group, and neither routed nor dead. */
  lost: number
  /** Routed or dead, and never sent. */
  ghost: number
  /** Routed and dead. */
  both: number
  /** A good record that is dead, or a bad one that was routed. */
  wrong: number
  /** Dead records with another value than was sent. */
  changed: number
  /** Poison that ran more often than it may. */
  overrun: number
  /** The group made no progress before all records were done. */
  stuck: number
  /** Not committed when the run ended, so not lost: only where the run is stuck. */
  unfinished: number
  /**
   * Good records that are dead because their process was killed `maxDeliveries` times. At most one
   * per so many kills.
   */
  unlucky: number
  /**
   * Routed or dead more than once: possible if a process died between send and commit. With
   * transactions, 0.
   */
  duplicatesRouted: number
  duplicatesDead: number
  records: number
  routed: number
  dead: number
  poisonRuns: Record<string, number>
  kills: number
  pauses: number
  joins: number
  leaves: number
  restarts: number
  seconds: number
  transactional: boolean
  examples: string[]
}

export const faults = ['lost', 'ghost', 'both', 'wrong', 'changed', 'overrun', 'stuck'] as const

const sessionMs = 1000

/** Partitions of the input topic. Records are sent to them in turn. */
const partitions = 8
const offsetOf = (n: number): number => Math.floor(n / partitions)

/** Runs nodes on a private broker of their own. */
export async function soak(settings: SoakSettings): Promise<Verdict> {
  const server = await privateKafka()
  try {
    return await soakOn(server, settings)
  } finally {
    await server.remove()
  }
}

/**
 * Runs nodes of one group on a private broker, with kills, pauses, joins and leaves, until every
 * record is done.
 */
export async function soakOn(server: PrivateServer, settings: SoakSettings): Promise<Verdict> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-soak-'))
  const bench = pipelineBench(server.url)
  let processes: ProcessGroup | undefined
  try {
    await bench.topic('in', partitions)
    await bench.topic('out', 4)
    await bench.topic('dead', 4)
    await send(bench, settings)
    processes = new ProcessGroup(settings, server.url, dir, bench.name)
    const startMs = performance.now()
    const isOver = await injectFaults(settings, bench, processes, server)
    await processes.dismiss()
    const seconds = (performance.now() - startMs) / 1000
    const verdict = await verify(settings, bench, dir)
    return { ...verdict, ...processes.counts, stuck: isOver ? 0 : 1, seconds }
  } finally {
    processes?.abandon()
    await bench.close().catch(() => {})
    rmSync(dir, { recursive: true, force: true })
  }
}

async function send(bench: PipelineBench, counts: RecordCounts): Promise<void> {
  const { records } = counts
  for (let n = 0; n < records; n += 1000) {
    const batch = Array.from({ length: Math.min(1000, records - n) }, (_, more) => n + more)
    await bench.put(
      `${bench.name}.in`,
      batch.map((one) => ({
        key: `key-${one % 997}`,
        partition: one % partitions,
        value: valueOf(one, counts),
      })),
    )
  }
}

function valueOf(n: number, counts: RecordCounts): Buffer {
  const id = idOf(n, counts)
  return planOf(n, counts) === 'malformed' ? Buffer.from(`\u0000${id}`) : streamOf(id)
}

/** Injects faults until all records are done. False if there was no progress for too long. */
async function injectFaults(
  settings: SoakSettings,
  bench: PipelineBench,
  processes: ProcessGroup,
  server: PrivateServer,
): Promise<boolean> {
  const dice = chance(settings.seed)
  const limitMs = settings.limitSeconds * 1000
  const { records, restarts, log = () => {} } = settings
  let done = 0
  let progressMs = performance.now()
  const quiet = new AbortController()
  const faultLoop = (async () => {
    for (;;) {
      await setTimeout(dice.between(500, 1500))
      if (quiet.signal.aborted) return
      await processes.fault(dice)
      const due = Math.floor((done / records) * (restarts + 1))
      if (processes.counts.restarts < Math.min(due, restarts)) {
        processes.counts.restarts += 1
        await server.kill9()
        await setTimeout(dice.between(200, 1000))
        await server.start()
      }
    }
  })()
  while (performance.now() < progressMs + limitMs && done < records) {
    await setTimeout(1000)
    const committed = await bench.committed(`${bench.name}.group`).catch(() => [])
    const sum = committed.reduce((total, offset) => total + Math.max(0, offset), 0)
    if (sum > done) {
      done = sum
      progressMs = performance.now()
    }
    log(`${done} of ${records}, ${JSON.stringify(processes.counts)}`)
    // No faults during the last few records, so that poison records reach their limit.
    if (done >= records * 0.97) quiet.abort()
  }
  quiet.abort()
  await faultLoop
  return done >= records
}

/** The processes of a run, and the only ones that it ever signals. */
class ProcessGroup {
  readonly counts = { kills: 0, pauses: 0, joins: 0, leaves: 0, restarts: 0 }
  readonly #spawn: () => void
  readonly #members = new Set<ChildProcess>()
  readonly #paused = new Set<ChildProcess>()
  readonly #minMembers: number
  #isOver = false
  #spawned = 0

  constructor(settings: SoakSettings, url: string, dir: string, prefix: string) {
    const { consumers, workMs, transactional, bug } = settings
    this.#minMembers = consumers
    this.#spawn = () => {
      const childSettings: ChildSettings = {
        url,
        dir,
        prefix,
        name: `node-${++this.#spawned}`,
        sessionMs,
        workMs,
        transactional,
        ...(bug ? { bug } : {}),
      }
      const file = fileURLToPath(new URL('./consumer.ts', import.meta.url))
      const child = spawn(process.execPath, [file, JSON.stringify(childSettings)], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        env: { ...process.env, NODE_NO_WARNINGS: '1' },
      })
      this.#members.add(child)
      child.once('exit', () => {
        this.#members.delete(child)
        this.#paused.delete(child)
        if (!this.#isOver && this.#members.size < this.#minMembers) this.#spawn()
      })
    }
    for (let n = 0; n < consumers; n++) this.#spawn()
  }

  /** Kills 40 %, pauses beyond the session 20 %, joins and leaves 40 %. */
  async fault(dice: Chance): Promise<void> {
    const able = [...this.#members].filter((child) => !this.#paused.has(child))
    const victim = dice.pick(able)
    const roll = dice.next()
    if (!victim || able.length < 2) return
    if (roll < 0.4) {
      this.counts.kills += 1
      victim.kill('SIGKILL')
    } else if (roll < 0.6) {
      this.counts.pauses += 1
      this.#paused.add(victim)
      victim.kill('SIGSTOP')
      void this.#wakeAfter(victim, dice.between(1.5, 3) * sessionMs)
    } else if (this.#members.size > this.#minMembers) {
      this.counts.leaves += 1
      victim.kill('SIGTERM')
    } else {
      this.counts.joins += 1
      this.#spawn()
    }
  }

  async #wakeAfter(victim: ChildProcess, ms: number): Promise<void> {
    await setTimeout(ms)
    this.#paused.delete(victim)
    victim.kill('SIGCONT')
  }

  async dismiss(): Promise<void> {
    this.#isOver = true
    for (const child of this.#members) {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
    }
    const endMs = performance.now() + 15_000
    while (this.#members.size > 0) {
      await setTimeout(50)
      if (performance.now() > endMs) this.abandon()
    }
  }

  abandon(): void {
    this.#isOver = true
    for (const child of this.#members) child.kill('SIGKILL')
  }
}

type RecordFindings = Omit<
  Verdict,
  'stuck' | 'kills' | 'pauses' | 'joins' | 'leaves' | 'restarts' | 'seconds'
>

/** Verifies the committed records of the topics. */
async function verify(
  settings: SoakSettings,
  bench: PipelineBench,
  dir: string,
): Promise<RecordFindings> {
  const { records, transactional } = settings
  const examples: string[] = []
  const note = (kind: string, id: string): number => {
    if (examples.length < 20) examples.push(`${kind}: ${id}`)
    return 1
  }
  const committed = await bench.committed(`${bench.name}.group`)
  const outRecords = await bench.read(`${bench.name}.out`)
  const outIds = outRecords.map(({ value }) => readStream(value)?.streamId ?? '?')
  const routed = tally(outIds)
  const values = new Map<string, Buffer>()
  const crashed = new Set<string>()
  const deadRecords = await bench.read(`${bench.name}.dead`)
  const deadIds = deadRecords.map(({ value }) => {
    const envelope = unseal(value)!
    const bytes = Buffer.from(envelope.value)
    const id = readStream(bytes)?.streamId ?? bytes.subarray(1).toString()
    values.set(id, bytes)
    if (envelope.message.errorType === 'CRASH_LOOP') crashed.add(id)
    return id
  })
  const dead = tally(deadIds)
  const sent = new Set<string>()
  const counts = {
    lost: 0,
    unfinished: 0,
    ghost: 0,
    both: 0,
    wrong: 0,
    changed: 0,
    overrun: 0,
    unlucky: 0,
  }
  for (let n = 0; n < records; n++) {
    const id = idOf(n, settings)
    const plan = planOf(n, settings)
    sent.add(id)
    const isRouted = routed.has(id)
    const isDead = dead.has(id)
    if (!isRouted && !isDead) {
      const kind = offsetOf(n) < (committed[n % partitions] ?? 0) ? 'lost' : 'unfinished'
      counts[kind] += note(kind, id)
    }
    if (isRouted && isDead) counts.both += note('both', id)
    const isRoutable = plan === 'good' || plan === 'flaky'
    if (isRoutable && crashed.has(id)) counts.unlucky += note('unlucky', id)
    else if (isRoutable ? isDead : isRouted) counts.wrong += note('wrong', id)
    const value = values.get(id)
    if (value && Buffer.compare(value, valueOf(n, settings)) !== 0)
      counts.changed += note('changed', id)
  }
  for (const id of [...routed.keys(), ...dead.keys()])
    if (!sent.has(id)) counts.ghost += note('ghost', id)
  const log = join(dir, 'poison.log')
  const runs = tally(existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [])
  for (const [id, count] of runs)
    if (count > maxDeliveries) counts.overrun += note('overrun', `${id}, ${count} times`)
  const noteTwice = (ids: string[], places: { partition: number; offset: number }[]): void => {
    const byId = Map.groupBy(ids.keys(), (at) => ids[at]!)
    for (const [id, all] of byId) {
      const where = all.map((at) => `${places[at]!.partition}:${places[at]!.offset}`)
      if (where.length > 1) note('twice', `${id}, at ${where.join(' and ')}`)
    }
  }
  if (transactional) {
    noteTwice(outIds, outRecords)
    noteTwice(deadIds, deadRecords)
  }
  const extra = (counts: Map<string, number>): number =>
    [...counts.values()].reduce((sum, count) => sum + count - 1, 0)
  return {
    ...counts,
    duplicatesRouted: extra(routed),
    duplicatesDead: extra(dead),
    records,
    routed: routed.size,
    dead: dead.size,
    poisonRuns: Object.fromEntries(runs),
    transactional,
    examples,
  }
}

function tally(ids: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Violations of a run. Duplicates count with transactions only. */
export function listViolations(verdict: Verdict): string[] {
  const kinds: string[] = faults.filter((kind) => verdict[kind] > 0)
  const { transactional, duplicatesRouted, duplicatesDead, unlucky, kills, pauses } = verdict
  if (unlucky * maxDeliveries > kills + pauses) kinds.push('unlucky')
  if (transactional && duplicatesRouted + duplicatesDead > 0) kinds.push('duplicates')
  return kinds
}
