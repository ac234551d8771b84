import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import type { ReplayProgress } from './replayed.ts'

/** The decision on one dead record. */
export interface Step {
  partition: number
  offset: number
  key: Buffer | undefined
  kind: 'sent' | 'quarantined' | 'passed' | 'left'
  outgoing: OutgoingRecord | undefined
  /** Offsets of copies of the record. */
  copies: readonly number[]
}

/** The progress of a replay after these steps. */
export function counted(before: ReplayProgress, steps: readonly Step[]): ReplayProgress {
  const progress = { ...before, positions: [...before.positions] }
  for (const { kind, partition, offset } of steps) {
    progress[kind] += 1
    progress.positions[partition] = offset + 1
  }
  return progress
}

/** The record stays where it is. */
export function left(step: Step): Step {
  return { ...step, kind: 'left', outgoing: undefined }
}

/** Another process handled it meanwhile. */
export function passed(step: Step): Step {
  return { ...step, kind: 'passed', outgoing: undefined }
}

export function outgoingIn(steps: readonly Step[]): OutgoingRecord[] {
  const all: OutgoingRecord[] = []
  for (const { outgoing } of steps) if (outgoing) all.push(outgoing)
  return all
}
