import type { Chance } from './chance.ts'
import { pause } from './child.ts'
import type { ProcessGroup, Member } from './process-group.ts'
import type { Phase } from './phases.ts'

/** Minimum number of working workers, so that letters keep running. */
const minWorkers = 1

/** Factor by which process faults are rarer while the server has faults. */
const serverPhaseFactor = 10

export interface KillerSettings {
  processes: ProcessGroup
  dice: Chance
  leaseMs: number
  untilMs: number
  phase: () => Phase
}

/**
 * Kills 70 %, pauses 20 %, restarts 10 %: one random member every 40 to 160 ms, if enough are
 * working.
 */
export async function killMembers(settings: KillerSettings): Promise<void> {
  const { processes, dice, leaseMs, untilMs, phase } = settings
  while (performance.now() < untilMs) {
    await pause(dice.between(40, 160) * (phase() === 'server' ? serverPhaseFactor : 1))
    if (phase() === 'quiet') continue
    const victim = chooseVictim(processes.members(), dice)
    if (victim === undefined) continue
    const roll = dice.next()
    if (roll < 0.7) processes.kill(victim)
    else if (roll < 0.9) processes.pause(victim, dice.between(0.5, 3) * leaseMs)
    else processes.restart(victim)
  }
}

/**
 * Chooses mostly working members, sometimes one that is still starting or already paused. Workers
 * are chosen more often than producers, since more can go wrong there.
 */
function chooseVictim(members: readonly Member[], dice: Chance): Member | undefined {
  const role = dice.next() < 0.8 ? 'worker' : 'producer'
  const able = members.filter(
    (member) => member.role === role && member.still !== 'held' && !member.asked,
  )
  const working = able.filter(({ ready, still }) => ready && still === 'no')
  if (role === 'worker' && working.length <= minWorkers) return undefined
  return dice.pick(dice.next() < 0.1 ? able : working)
}
