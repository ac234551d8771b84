// Private servers for the tests: npm run servers -- install|start|stop|status [name…]
// The scripts are TypeScript, so an older Node starts the pinned one.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const scripts = dirname(fileURLToPath(import.meta.url))
if (process.features.typescript) await import('./servers/main.ts')
else {
  const node = join(dirname(scripts), 'node_modules', '.bin', 'node')
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  process.exitCode = spawnSync(node, args, { stdio: 'inherit' }).status ?? 1
}
