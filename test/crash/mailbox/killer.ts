import type { Chance } from '../chance.ts'
import { pause } from '../child.ts'
import type { Phase } from '../phases.ts'
import { pauseMs, type Crew, type Member } from './crew.ts'

export interface KillerSettings {
  crew: Crew
  dice: Chance
  untilMs: number
  phase: () => Phase
}

/** How much rarer its faults are while the server has its own. */
const restraint = 3

/** Kills 55 %, pauses 20 %, restarts 25 %: one random member at a time, as long as another consumer is at work. */
export async function killAround({ crew, dice, untilMs, phase }: KillerSettings): Promise<void> {
  while (performance.now() < untilMs) {
    await pause(dice.between(150, 600) * (phase() === 'server' ? restraint : 1))
    if (phase() === 'quiet') continue
    const victim = choose(crew, dice)
    if (victim === undefined) continue
    const roll = dice.next()
    if (roll < 0.55) crew.kill(victim)
    else if (roll < 0.75) crew.pause(victim, dice.between(0.2, 1) * pauseMs)
    else crew.restart(victim)
  }
}

function choose(crew: Crew, dice: Chance): Member | undefined {
  const role = dice.next() < 0.85 ? 'consumer' : 'producer'
  const able = crew
    .members()
    .filter(
      (member) => member.role === role && !member.still && !member.asked && crew.isReady(member),
    )
  return role === 'consumer' && able.length < 2 ? undefined : dice.pick(able)
}
