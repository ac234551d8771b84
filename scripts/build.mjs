// Compiles src to dist from scratch, and builds the dashboard. With a type error nothing is
// written, so a dist that exists is complete. dist/docs is built by `npm run docs:site`.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

function run(command, ...args) {
  execFileSync(join(root, 'node_modules', '.bin', command), args, { cwd: root, stdio: 'inherit' })
}

/** Writes a compressed copy of each script and style beside it, which the server sends. */
function compress(folder) {
  for (const name of readdirSync(folder).filter((file) => /\.(js|css)$/.test(file)))
    writeFileSync(join(folder, `${name}.gz`), gzipSync(readFileSync(join(folder, name))))
}

mkdirSync(join(root, 'dist'), { recursive: true })
for (const name of readdirSync(join(root, 'dist')))
  if (name !== 'docs') rmSync(join(root, 'dist', name), { recursive: true })
// One checker needs half the CPU time of four.
run('tsc', '-p', 'tsconfig.build.json', '--checkers', '1')
run('vite', 'build', 'web', '--logLevel', 'warn')
compress(join(root, 'dist', 'web', 'assets'))
chmodSync(join(root, 'dist', 'cli', 'main.js'), 0o755)
