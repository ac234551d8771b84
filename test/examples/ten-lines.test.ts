import { join } from 'node:path'
import { expect, it } from 'vitest'
import { aFolder } from '../folders.ts'
import { run } from '../processes.ts'

const cwd = aFolder('redrive-example')

it('a failed guarded call is stored and charges the order on the retry', async () => {
  const example = join(import.meta.dirname, '../../examples/ten-lines.ts')
  const { stdout } = await run(process.execPath, [example], { cwd })
  expect(stdout).toContain('failed: Error: connect ECONNREFUSED')
  expect(stdout).toMatch(/charge-card is pending: .* \(network\), due /)
  expect(stdout).toContain('order 42 charged at call 2')
})
