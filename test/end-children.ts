// A test that fails or takes too long may leave processes that it has started. They would have the
// output of the run open, and vitest would wait for them for ever.
import { spawnSync } from 'node:child_process'

// Vitest ends the process of a test file with this signal.
process.once('SIGTERM', () => {
  spawnSync('pkill', ['-KILL', '-P', String(process.pid)])
  process.exit()
})
