import { DeadLetterQueue } from '../src/index.ts'
import { payments, report, type Order } from './payments.ts'

const dlq = await DeadLetterQueue.open('sqlite:redrive.db')
const chargeCard = dlq.guard('charge-card', async (order: Order) => {
  await payments.charge(order)
})

dlq.start() // redelivers what is due, also what an earlier process left behind
await chargeCard({ id: 42 }).catch(report) // fails? kept, classified, retried with backoff

// Show what is kept, retry it now, and end.
const { items } = await dlq.find({ queue: 'charge-card', state: 'pending' })
for (const letter of items) {
  console.log(
    `${letter.queue} is ${letter.state}: ${letter.failure.message} (${letter.category}), due ${letter.retryAt}`,
  )
  const resolved = new Promise((tell) => dlq.on('resolved', tell))
  await dlq.retry(letter.id, 'example')
  await resolved
}
await dlq.close()
