import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import type { ReplayProgress } from './replayed.ts'

/** What becomes of one dead record. */
export interface Step {
  partition: number
  offset: number
  key: Buffer | undefined
  kind: 'sent' | 'quarantined' | 'passed' | 'left'
  outgoing: OutgoingRecord | undefined
  /** Where else the same record lies. */
  copies: readonly number[]
}

/** How far a replay is when these are done. */
export function counted(before: ReplayProgress, steps: readonly Step[]): ReplayProgress {
  const progress = { ...before, positions: [...before.positions] }
  for (const { kind, partition, offset } of steps) {
    progress[kind] += 1
    progress.positions[partition] = offset + 1
  }
  return progress
}

/** It stays where it is. */
export function left(step: Step): Step {
  return { ...step, kind: 'left', outgoing: undefined }
}

/** Somebody else saw to it meanwhile. */
export function passed(step: Step): Step {
  return { ...step, kind: 'passed', outgoing: undefined }
}

export function outgoingIn(steps: readonly Step[]): OutgoingRecord[] {
  const all: OutgoingRecord[] = []
  for (const { outgoing } of steps) if (outgoing) all.push(outgoing)
  return all
}
