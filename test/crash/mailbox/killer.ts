import type { Chance } from '../chance.ts'
import { pause } from '../child.ts'
import type { Phase } from '../phases.ts'
import { pauseMs, type ProcessGroup, type Member } from './process-group.ts'

export interface KillerSettings {
  processes: ProcessGroup
  dice: Chance
  untilMs: number
  phase: () => Phase
}

/** Factor by which process faults are rarer while the server has faults. */
const serverPhaseFactor = 3

/**
 * Kills 55 %, pauses 20 %, restarts 25 %: one random member at a time, if another consumer works.
 */
export async function killMembers({
  processes,
  dice,
  untilMs,
  phase,
}: KillerSettings): Promise<void> {
  while (performance.now() < untilMs) {
    await pause(dice.between(150, 600) * (phase() === 'server' ? serverPhaseFactor : 1))
    if (phase() === 'quiet') continue
    const victim = chooseVictim(processes, dice)
    if (victim === undefined) continue
    const roll = dice.next()
    if (roll < 0.55) processes.kill(victim)
    else if (roll < 0.75) processes.pause(victim, dice.between(0.2, 1) * pauseMs)
    else processes.restart(victim)
  }
}

function chooseVictim(processes: ProcessGroup, dice: Chance): Member | undefined {
  const role = dice.next() < 0.85 ? 'consumer' : 'producer'
  const able = processes
    .members()
    .filter(
      (member) =>
        member.role === role && !member.still && !member.asked && processes.isReady(member),
    )
  return role === 'consumer' && able.length < 2 ? undefined : dice.pick(able)
}
