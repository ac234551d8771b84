/** How a first letter is sent. The documentation tests compile the examples in TypeScript. */
export function examplesFor(
  origin: string,
): { name: string; language: 'sh' | 'ts'; code: string }[] {
  return [
    {
      name: 'curl',
      language: 'sh',
      code: `curl -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
  -d '{ "queue": "charge-card", "json": { "order": 42, "amount": 20 },
        "error": { "message": "socket hang up", "code": "ECONNRESET" } }' \\
  ${origin}/api/capture`,
    },
    {
      name: 'TypeScript client',
      language: 'ts',
      code: `import { createClient } from 'redrive/api'

const redrive = createClient({ url: '${origin}', token: process.env.REDRIVE_TOKEN! })
await redrive.capture({
  queue: 'charge-card',
  json: { order: 42, amount: 20 },
  error: { message: 'socket hang up', code: 'ECONNRESET' },
})`,
    },
    {
      name: 'Library',
      language: 'ts',
      code: libraryExample,
    },
  ]
}

export const libraryExample = `import { DeadLetterQueue } from 'redrive'

// The store of this server
const dlq = await DeadLetterQueue.open('sqlite:redrive.db')
const chargeCard = dlq.guard('charge-card', async (order: { id: number }) => {
  throw new Error(\`the charge of order \${order.id} failed\`)
})
await chargeCard({ id: 42 }).catch(console.error)`
