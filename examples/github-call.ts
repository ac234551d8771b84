import { DeadLetterQueue, type ExecutorRun } from '../src/index.ts'
import { startGitHub } from './stubs/github.ts'
import { request, logRun } from './stubs/server.ts'

interface Comment {
  owner: string
  repo: string
  issue: number
  body: string
}

const gitHub = await startGitHub()
const dlq = await DeadLetterQueue.open('memory:')

// The built-in policy `github` with short waits, fewer runs, and retries after timeouts.
const executor = dlq.executor({
  policies: {
    github: {
      attempts: 3,
      initialDelayMs: 50,
      maxDelayMs: 1500,
      timeoutMs: 1000,
      retryOn: { statuses: [429, 500, 502, 503, 504], errors: ['TimeoutError'] },
    },
  },
})

/**
 * GitHub has no idempotency keys. The comment contains a marker, and a retry checks for it first.
 */
async function comment(payload: Comment, signal?: AbortSignal): Promise<string> {
  const { owner, repo, issue, body } = payload
  const path = `/repos/${owner}/${repo}/issues/${issue}/comments`
  const context = {
    operation: { method: 'POST', endpoint: path, payload },
    github: { owner, repo, entityNumber: issue, entityType: 'issue' as const },
    dedupeKey: `${path} ${body}`,
  }
  const call = ({ attempt, signal }: ExecutorRun): Promise<string> =>
    logRun(attempt, async () => {
      const known = (await request(gitHub.url + path, signal)) as { body: string }[]
      if (known.some((one) => one.body === body)) return 'already exists'
      await request(gitHub.url + path, signal, { body })
      return 'added'
    })
  return executor.execute('github', call, signal ? { ...context, signal } : context)
}

// A redelivery makes the same call. Inside it, the executor creates no second letter.
dlq.handle('github_api', async (run) => {
  console.log(`  comment: ${await comment(run.input as Comment, run.signal)}`)
})
dlq.start()
const issue = { owner: 'octo', repo: 'hello', issue: 7 }

console.log('a rate limit, then a lost answer: the caller notices nothing')
gitHub.next({ status: 429, retryAfterSeconds: 1 }, 'ok', 'hang')
console.log(`  comment: ${await comment({ ...issue, body: 'first <!-- mark 1 -->' })}`)

console.log('a reset, which this policy does not retry: the call fails, and its letter is stored')
gitHub.next('reset')
await comment({ ...issue, body: 'second <!-- mark 2 -->' }).catch(report)

console.log('errors and no answer: the call fails, and its letter is stored')
gitHub.next({ status: 500 }, 'hang', { status: 503 })
await comment({ ...issue, body: 'third <!-- mark 3 -->' }).catch(report)

const { items } = await dlq.find({ queue: 'github_api', order: 'oldest' })
for (const { id, state, category, attempts } of items) {
  console.log(`stored: ${state}, ${category}, attempts: ${attempts}; now it is redelivered`)
  const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
  await dlq.retry(id, 'example')
  await resolved
  console.log(`  letter: ${(await dlq.get(id))?.state}`)
}
await dlq.close()
await gitHub.close()

function report(error: unknown): void {
  console.log(`  failed: ${String(error)}`)
}
