import { DeadLetterQueue, type ExecutorRun } from '../src/index.ts'
import { startLlm } from './stubs/llm.ts'
import { request, logRun } from './stubs/server.ts'

interface Prompt {
  prompt: string
}

const llm = await startLlm()
const dlq = await DeadLetterQueue.open('memory:')

// The built-in policy `llm` with short waits, and retries after connection resets.
const executor = dlq.executor({
  policies: {
    llm: {
      initialDelayMs: 50,
      maxDelayMs: 1500,
      timeoutMs: 1000,
      retryOn: { categories: ['rate-limit', 'timeout', 'network', 'dependency'] },
    },
  },
})

async function complete(payload: Prompt, signal?: AbortSignal): Promise<string> {
  const call = ({ attempt, signal }: ExecutorRun): Promise<string> =>
    logRun(attempt, async () => {
      const answer = await request(`${llm.url}/v1/complete`, signal, payload)
      return (answer as { completion: string }).completion
    })
  const context = { operation: { method: 'POST', endpoint: '/v1/complete', payload } }
  return executor.execute('llm', call, signal ? { ...context, signal } : context)
}

// A redelivery makes the same call. Inside it, the executor creates no second letter.
dlq.handle('llm_call', async (run) => {
  console.log(`  answer: ${await complete(run.input as Prompt, run.signal)}`)
})
dlq.start()

console.log('a rate limit and an error, then success: the caller notices nothing')
llm.next({ status: 429, retryAfterSeconds: 1 }, { status: 500 })
console.log(`  answer: ${await complete({ prompt: 'hello' })}`)

console.log('no answer, a reset, an error: the call fails, and its letter is stored')
llm.next('hang', 'reset', { status: 500 })
await complete({ prompt: 'try later' }).catch((error: unknown) =>
  console.log(`  failed: ${String(error)}`),
)
const { items } = await dlq.find({ queue: 'llm_call' })
for (const { id, state, category, attempts, retryAt } of items) {
  console.log(`  stored: ${state}, ${category}, attempts: ${attempts}, due ${retryAt}`)
  console.log('the model works again: the letter is redelivered')
  const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
  await dlq.retry(id, 'example')
  await resolved
  console.log(`  letter: ${(await dlq.get(id))?.state}`)
}

await dlq.close()
await llm.close()
