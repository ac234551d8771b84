import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)

it('a failed guarded call is stored and charges the order on the retry', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'redrive-example-'))
  try {
    const example = join(import.meta.dirname, '../../examples/ten-lines.ts')
    const { stdout } = await run(process.execPath, [example], { cwd })
    expect(stdout).toContain('failed: Error: connect ECONNREFUSED')
    expect(stdout).toMatch(/charge-card is pending: .* \(network\), due /)
    expect(stdout).toContain('order 42 charged at call 2')
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
})
