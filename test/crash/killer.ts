import type { Chance } from './chance.ts'
import { pause } from './child.ts'
import type { Crew, Member } from './crew.ts'
import type { Phase } from './phases.ts'

/** Somebody must be left to do the work, or nothing would ever be at stake. */
const workersLeft = 1

/** How much rarer its faults are while the server has its own. */
const restraint = 10

export interface KillerSettings {
  crew: Crew
  dice: Chance
  leaseMs: number
  untilMs: number
  phase: () => Phase
}

/** Kills 70 %, pauses 20 %, restarts 10 %: one random member every 40 to 160 ms, as long as enough are at work. */
export async function killAround(settings: KillerSettings): Promise<void> {
  const { crew, dice, leaseMs, untilMs, phase } = settings
  while (performance.now() < untilMs) {
    await pause(dice.between(40, 160) * (phase() === 'server' ? restraint : 1))
    if (phase() === 'quiet') continue
    const victim = choose(crew.members(), dice)
    if (victim === undefined) continue
    const roll = dice.next()
    if (roll < 0.7) crew.kill(victim)
    else if (roll < 0.9) crew.pause(victim, dice.between(0.5, 3) * leaseMs)
    else crew.restart(victim)
  }
}

/**
 * Mostly members that are at work; now and then one that is still starting, or that stands still already. Workers
 * more often than producers, since more can go wrong there.
 */
function choose(members: readonly Member[], dice: Chance): Member | undefined {
  const role = dice.next() < 0.8 ? 'worker' : 'producer'
  const able = members.filter(
    (member) => member.role === role && member.still !== 'held' && !member.asked,
  )
  const working = able.filter(({ ready, still }) => ready && still === 'no')
  if (role === 'worker' && working.length <= workersLeft) return undefined
  return dice.pick(dice.next() < 0.1 ? able : working)
}
