import { RedriveError } from '../../src/errors.ts'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import { MainLoop, type MainLoopOptions } from '../../src/loops/main-loop.ts'
import type { Mailbox, ReceiveOptions } from '../../src/mailbox.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import type { LoopBench } from '../loops/a-loop.ts'

export type Request = { requestId?: string; n?: number }

export const fails = (): never => {
  throw new TypeError('no such order')
}
export const away = (): RedriveError =>
  new RedriveError('MAILBOX_UNAVAILABLE', 'the broker is unavailable')
export const after = (maxDeliveryCount: number): DLQPolicy => new DLQPolicy({ maxDeliveryCount })

/** Starts a loop. Default: dead-letters to the mailbox of the bench after three deliveries. */
export function runLoop(
  bench: LoopBench,
  options: Partial<MainLoopOptions<Request, unknown>> = {},
): MainLoop<Request> {
  const dlq = { to: bench.dlq, policy: after(3) }
  const loop = new MainLoop<Request>({ ...bench.parts, dlq, process: fails, ...options })
  void loop.run()
  return loop
}

export async function deadOf(dlq: Mailbox): Promise<DeadMessage[]> {
  const messages = await dlq.receive({ max: 10 })
  return messages.map((message) => readDeadMessage(message, dlq.name))
}

/** The numbers of requests, dead letters and replies. */
export const counts = (bench: LoopBench): Promise<number[]> =>
  Promise.all([bench.requests, bench.dlq, bench.replies].map((one) => one.approximateCount()))

/** Wraps a mailbox and records the visibility of each receive. */
export function recordReceives(inner: Mailbox): { mailbox: Mailbox; visibilities: unknown[] } {
  const visibilities: unknown[] = []
  const mailbox = new Proxy(inner, {
    get: (target, key) => {
      if (key === 'receive')
        return (options: ReceiveOptions) => {
          visibilities.push(options.visibilitySeconds)
          return target.receive(options)
        }
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { mailbox, visibilities }
}
