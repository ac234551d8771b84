import type { Store } from '../../../src/store.ts'
import { override } from '../override.ts'

/** The write in which a process kills itself. */
export interface KillPoint {
  /** The number of letters that the process writes before. */
  after: number
  at: 'before' | 'during' | 'after'
}

/** Wraps a store so that the process is killed in the write that reaches the point. */
export function killStore(store: Store, { after, at }: KillPoint): Store {
  let written = 0
  const write = async <T>(letters: number, call: () => Promise<T>): Promise<T> => {
    written += letters
    const isLast = letters > 0 && written > after
    if (isLast && at === 'before') kill()
    const result = call()
    if (isLast && at === 'during') kill()
    const value = await result
    if (isLast) kill()
    return value
  }
  return override(store, {
    apply: (changes) => write(changes.length, () => store.apply(changes)),
    applyAll: (letters, moves) => write(letters.length, () => store.applyAll(letters, moves)),
    async claim(request) {
      const claim = await store.claim(request)
      return write(claim.letters.length, async () => claim)
    },
  })
}

function kill(): void {
  process.kill(process.pid, 'SIGKILL')
}
