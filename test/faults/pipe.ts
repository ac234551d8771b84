// One direction of a proxied connection: bytes come in, wait if they must, and are passed, held or lost.
import type { Socket } from 'node:net'

/** What becomes of bytes. Held ones are delivered once they may pass, as TCP does when a network heals. */
export type Flow = 'pass' | 'hold' | 'drop'

/** What happened to a piece of a stream. */
export type Fate = 'passed' | 'held' | 'dropped'

export interface PipeRules {
  readonly flow: () => Flow
  /** How long the next piece travels, in ms. */
  readonly travel: () => number
  /** May change a piece, or end the connection: nothing means that it did. */
  readonly alter: (piece: Buffer) => Buffer | undefined
  readonly tell: (fate: Fate) => void
}

/** The end of a stream, in order or broken, stands in the queue like any piece. */
type Piece = Buffer | 'end' | 'broken'

export interface Pipe {
  /** Sends what was held on its way, if it is to be held no longer. */
  readonly flush: () => void
}

/**
 * Carries what one socket says to the other. A pipe that lost a piece is deaf for ever: TCP never delivers a stream
 * with a hole in it, so what comes after is lost as well, and the peer never learns that the other side has ended.
 */
export function pipe(from: Socket, to: Socket, rules: PipeRules): Pipe {
  const travelling: Piece[] = []
  const waiting: Piece[] = []
  let deaf = false
  let due = 0

  const deliver = (piece: Piece): void => {
    if (to.destroyed || to.writableEnded) return
    if (piece === 'broken') to.resetAndDestroy()
    else if (piece === 'end') to.end()
    else {
      const altered = rules.alter(piece)
      if (altered === undefined) return
      to.write(altered)
      rules.tell('passed')
    }
  }

  const lose = (piece: Piece): void => {
    deaf = true
    if (typeof piece !== 'string') rules.tell('dropped')
  }

  const route = (piece: Piece): void => {
    const flow = rules.flow()
    if (deaf || flow === 'drop') lose(piece)
    else if (flow === 'hold') {
      waiting.push(piece)
      if (typeof piece !== 'string') rules.tell('held')
    } else deliver(piece)
  }

  const arrive = (piece: Piece): void => {
    const now = performance.now()
    due = Math.max(due, now + rules.travel())
    if (due <= now && travelling.length === 0) {
      route(piece)
      return
    }
    // Timers may pass each other; pieces may not.
    travelling.push(piece)
    setTimeout(() => route(travelling.shift()!), due - now)
  }

  from.on('data', arrive)
  from.on('end', () => arrive('end'))
  from.on('error', () => arrive('broken'))

  return {
    flush: () => {
      if (rules.flow() !== 'hold') for (const piece of waiting.splice(0)) route(piece)
    },
  }
}
