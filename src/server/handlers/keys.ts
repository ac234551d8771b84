import type { keyEndpoints } from '../../api/endpoints/keys.ts'
import type { KeyRotation } from '../../store.ts'
import { toLine } from '../lines.ts'
import { rethrowAsInput } from '../problems.ts'
import type { Handlers } from './handler.ts'

export const keyHandlers: Handlers<keyof typeof keyEndpoints> = {
  rotateKeys: (_, { dlq, signal }) =>
    progressLines((onProgress) => dlq.rotateKeys({ signal, onProgress }).catch(rethrowAsInput)),
}

/** Progress, no more often than the client reads it, and at last the result. */
async function* progressLines(
  rotate: (onProgress: (progress: KeyRotation) => void) => Promise<KeyRotation>,
): AsyncGenerator<string> {
  let next = Promise.withResolvers<KeyRotation>()
  const rotation = rotate((progress) => next.resolve(progress))
  // If the client disconnects, nobody awaits the rotation: its error is not an unhandled one.
  const ended = rotation.then(() => undefined)
  ended.catch(() => {})
  for (;;) {
    const progress = await Promise.race([next.promise, ended])
    if (!progress) break
    next = Promise.withResolvers()
    yield toLine(progress)
  }
  yield toLine(await rotation)
}
