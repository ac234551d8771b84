import { DeadLetterQueue, fixed } from '../src/index.ts'

/** Simulated repositories: each is reachable from this attempt on. */
const reachableFrom: Record<string, number> = { api: 1, web: 2, docs: 3 }
let attempt = 0

const dlq = await DeadLetterQueue.open('memory:', { backoff: fixed(200) })

const sweeps = dlq.workflow<{ rule: string }>({
  name: 'code-sweep',
  handler: async ({ task, targets = [], adapter }) => {
    attempt++
    const failed = targets.filter((target) => attempt < (reachableFrom[target] ?? Infinity))
    console.log(`run ${attempt}: ${task.rule} on ${targets.join(', ')} with ${adapter}`)
    if (failed.length === 0) return { status: 'completed' }
    const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    return { status: failed.length === targets.length ? 'failed' : 'partial', failed, error }
  },
})

const answer = await sweeps.run({
  id: 'sweep-2026-07-01',
  task: { rule: 'no-var' },
  targets: ['api', 'web', 'docs'],
  adapter: 'codemod',
  user: { name: 'ada' },
})
if (answer.status === 'completed') console.log('completed in the first run')
else if (answer.enqueued)
  console.log(`${answer.status}, stored: ${answer.failed.join(', ')} will be retried`)
else console.log(`${answer.status}, not stored: ${answer.why} (${answer.detail})`)

const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
dlq.start()
await resolved
const { items } = await dlq.find({ payload: true })
for (const { action, note } of items[0]?.history ?? [])
  console.log(note === undefined ? action : `${action}: ${note}`)
await dlq.close()
