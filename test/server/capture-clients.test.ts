import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { aFolder } from '../folders.ts'
import { run, trySync } from '../processes.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

const page = readFileSync(
  join(import.meta.dirname, '../../docs/guides/capture-over-http.md'),
  'utf8',
)
const folder = aFolder('clients')
const has = (program: string, flag: string): boolean => trySync(program, [flag]).status === 0
const blockOf = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!

let server: TestServer

withServerInEachTest((started) => (server = started))

async function runFile(program: string, file: string, code: string): Promise<void> {
  const path = join(folder, file)
  writeFileSync(path, code)
  const REDRIVE_TOKEN = await server.token({ permissions: ['letter:capture'] })
  const env = { ...process.env, SERVER_URL: server.url, REDRIVE_TOKEN }
  await run(program, [path], { env })
}

async function stored(): Promise<unknown> {
  const { items } = await server.dlq.find({ payload: true })
  return items.map(({ queue, payload, failure }) => ({
    queue,
    payload: JSON.parse(Buffer.from(payload.bytes).toString()) as unknown,
    message: failure.message,
  }))
}

describe('the clients of the guide', () => {
  it.skipIf(!has('java', '-version'))('Java stores a failure', { timeout: 60_000 }, async () => {
    await runFile('java', 'Capture.java', blockOf('java'))
    expect(await stored()).toEqual([
      { queue: 'charge-card', payload: { order: 42 }, message: 'connection reset' },
    ])
  })

  it.skipIf(!has('python3', '--version'))('Python stores a failure', async () => {
    const call = `
import os
capture(os.environ["SERVER_URL"], os.environ["REDRIVE_TOKEN"], "mail", {"to": 1}, ValueError("no"))
`
    await runFile('python3', 'capture.py', blockOf('python') + call)
    expect(await stored()).toEqual([{ queue: 'mail', payload: { to: 1 }, message: 'no' }])
  })
})
