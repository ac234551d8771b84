// Compiles src to dist from scratch, and copies the files of the web page. With a type error
// nothing is written, so a dist that exists is complete.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
rmSync(join(root, 'dist'), { recursive: true, force: true })
execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
cpSync(join(root, 'src', 'server', 'page'), join(root, 'dist', 'server', 'page'), {
  recursive: true,
})
chmodSync(join(root, 'dist', 'cli', 'main.js'), 0o755)
