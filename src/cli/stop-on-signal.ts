/** The exit code of shells for an interrupted program. */
import { terminal } from './terminal.ts'
export const stoppedExit = 130

/** The first signal stops a long operation between two batches; the second ends the process. */
export function stopOnSignal(): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController()
  const stop = (): void => {
    end()
    controller.abort()
  }
  const end = (): void => {
    terminal.removeListener('SIGINT', stop)
    terminal.removeListener('SIGTERM', stop)
  }
  terminal.once('SIGINT', stop)
  terminal.once('SIGTERM', stop)
  return { signal: controller.signal, end }
}
