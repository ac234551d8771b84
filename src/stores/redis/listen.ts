import { systemClock } from '../../clock/clock.ts'
import type { RedisConnection } from '../../backends/redis/connection.ts'

/** The pause before subscribing again after a lost connection. */
const retryPauseMs = 1000

/** Calls `onMessage` for every message on the channel, until the returned function is called. */
export function listen(
  connection: RedisConnection,
  channel: string,
  onMessage: () => void,
): () => void {
  let stopped = false
  let leave = (): void => {}
  let cancel = (): void => {}
  const again = (): void => {
    cancel()
    if (stopped) return
    cancel = systemClock.timer(retryPauseMs, () => void start())
  }
  const start = async (): Promise<void> => {
    try {
      leave = await connection.subscribe(channel, onMessage, again)
      if (stopped) leave()
    } catch {
      again()
    }
  }
  void start()
  return () => {
    stopped = true
    cancel()
    leave()
  }
}
