// A process with an alert and a webhook. Arguments: the store as JSON, the URL of the receiver,
// how far its clock is ahead in milliseconds, and `dies` or `lives`. A process that dies kills
// itself when the receiver has answered, before the answer is recorded.
import { systemClock } from '../../../src/clock/clock.ts'
import { webhook } from '../../../src/observers/notify/webhook.ts'
import type { Target } from '../../../src/observers/notify/target.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { openPlace, type StorePlace } from './store-place.ts'

const [place = '', url = '', aheadMs = '0', ending = ''] = process.argv.slice(2)
const clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) }
const hook = webhook({ url, private: true, clock })
const target: Target = {
  ...hook,
  send: async (notification) => {
    const result = await hook.send(notification)
    if (ending === 'dies') process.kill(process.pid, 'SIGKILL')
    return result
  },
}
const dlq = await DeadLetterQueue.open(openPlace(JSON.parse(place) as StorePlace), {
  clock,
  alerts: [{ name: 'some-parked', when: { metric: 'parked', above: 0 }, severity: 'critical' }],
  notify: { hook: target },
})
process.once('SIGTERM', () => void dlq.close())
dlq.start()
