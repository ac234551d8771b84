import { DeadLetterQueue } from '../src/index.ts'
import { payments, report, type Order } from './payments.ts'

const dlq = await DeadLetterQueue.open('sqlite:redrive.db')
const chargeCard = dlq.guard('charge-card', async (order: Order) => {
  await payments.charge(order)
})

dlq.start() // redelivers due letters, also those of an earlier process
await chargeCard({ id: 42 }).catch(report) // a failure is stored, classified, and retried with backoff

// Print the stored letters, retry them now, and exit.
const { items } = await dlq.find({ queue: 'charge-card', state: 'pending' })
for (const letter of items) {
  console.log(
    `${letter.queue} is ${letter.state}: ${letter.failure.message} (${letter.category}), due ${letter.retryAt}`,
  )
  const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
  await dlq.retry(letter.id, 'example')
  await resolved
}
await dlq.close()
