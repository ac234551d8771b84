import type { Headers } from '../../backends/kafka/record.ts'
import { isObject } from '../../letter/reading.ts'
import { toTimestamp } from '../../letter/time.ts'

/** The history of a replayed record. It is a header, since the value is sent unchanged. */
export interface Lineage {
  /** The number of replays. */
  reprocessed: number
  /** When the record failed for the first time. */
  firstFailedMs?: number
  /** The key of the dead record. */
  dead?: string
  /** The id of the replay that sent it. */
  replay?: string
}

export type { Headers }

/** JSON. One header instead of four: headers take longer to send than the rest of a record. */
const header = Buffer.from('redrive-lineage')
const maxLength = 2000

/** Reads the header, which anybody may have written. A record that was never replayed has none. */
export function lineageIn(headers: Headers): Lineage {
  const found = headers.findLast(([name]) => isOurs(name))
  const lineage: Lineage = { reprocessed: 0 }
  const text = found?.[1]
  if (!text || text.length > maxLength) return lineage
  const { replays, firstFailedAt, dead, replay } = parsed(text.toString())
  if (Number.isInteger(replays) && isWithin(replays, 0, 999_999)) lineage.reprocessed = replays
  const ms = typeof firstFailedAt === 'string' ? Date.parse(firstFailedAt) : Number.NaN
  if (!Number.isNaN(ms)) lineage.firstFailedMs = ms
  if (typeof dead === 'string') lineage.dead = dead
  if (typeof replay === 'string') lineage.replay = replay
  return lineage
}

/** All headers except the lineage: it concerns one node only. */
export function withoutLineage(headers: Headers): Headers {
  return headers.filter(([name]) => !isOurs(name))
}

export function withLineage(headers: Headers, lineage: Lineage): Headers {
  return [...withoutLineage(headers), [header, Buffer.from(toLineageJson(lineage))]]
}

/**
 * Written by hand: every replayed record has it, and JSON.stringify takes several times as long.
 */
function toLineageJson({ reprocessed, firstFailedMs, dead, replay }: Lineage): string {
  let text = `{"replays":${reprocessed}`
  if (firstFailedMs !== undefined) text += `,"firstFailedAt":"${toTimestamp(firstFailedMs)}"`
  if (dead !== undefined) text += `,"dead":${JSON.stringify(dead)}`
  if (replay !== undefined) text += `,"replay":${JSON.stringify(replay)}`
  return `${text}}`
}

function isOurs(name: Buffer): boolean {
  return name.length === header.length && name.equals(header)
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most
}

function parsed(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text)
    return isObject(found) ? (found as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/**
 * True at the maximum number of replays: a new failure is quarantined, and the dead record is not
 * replayed again.
 */
export function isSpent(reprocessed: number, maxReprocessCount: number): boolean {
  return reprocessed >= maxReprocessCount
}
