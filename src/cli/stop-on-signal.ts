/** The exit code of shells for an interrupted program. */
export const stoppedExit = 130

/** The first signal stops a long operation between two batches; the second ends the process. */
export function stopOnSignal(): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController()
  const stop = (): void => {
    end()
    controller.abort()
  }
  const end = (): void => {
    process.removeListener('SIGINT', stop)
    process.removeListener('SIGTERM', stop)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  return { signal: controller.signal, end }
}
