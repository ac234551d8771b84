import { Roll, type OnRoll } from './roll.ts'

interface Listener extends OnRoll {
  act: () => void
}

interface Heard {
  all: Roll<Listener>
  /** Listens no more. */
  end: () => void
}

const heard = new WeakMap<AbortSignal, Heard>()

/**
 * Calls `act`, which must not throw, once the signal aborts; the answer takes that back. For what is done many times with one signal that
 * lives long: all share one listener of it. Node keeps listeners in a linked list, and one that was removed still points to those that came
 * after it. Once it is so old that only a full collection looks at it, it keeps all of them alive, with everything that they would have acted on.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const { all, end } = heard.get(signal) ?? listened(signal)
  const mine: Listener = { act, at: 0 }
  all.add(mine)
  return () => {
    if (all.delete(mine) && all.size === 0) end()
  }
}

/** Until nobody waits any more: Node itself keeps some signals alive for as long as they have a listener. */
function listened(signal: AbortSignal): Heard {
  const all = new Roll<Listener>()
  const tell = (): void => {
    end()
    for (const one of all.list()) if (all.delete(one)) one.act()
  }
  const end = (): void => {
    heard.delete(signal)
    signal.removeEventListener('abort', tell)
  }
  signal.addEventListener('abort', tell)
  const mine: Heard = { all, end }
  heard.set(signal, mine)
  return mine
}
