// Prepares a new clone if needed: installs the packages of the lock file, then builds. Runs on the
// Node of the machine, before the pinned one is installed, so it uses no new features.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const at = (...parts) => join(root, ...parts)

/** Modification time of the newest file below a folder. */
function newest(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) =>
      entry.isDirectory()
        ? newest(join(folder, entry.name))
        : statSync(join(folder, entry.name)).mtimeMs,
    )
    .reduce((a, b) => Math.max(a, b), 0)
}

const installed = at('node_modules', '.installed-lock')
const lock = readFileSync(at('package-lock.json'), 'utf8')
if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lock) {
  console.log('Installing packages (once) …')
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
  })
  writeFileSync(installed, lock)
}

if (process.argv.includes('build')) {
  const built = at('dist', 'index.js')
  const sources = Math.max(newest(at('src')), statSync(at('tsconfig.build.json')).mtimeMs)
  if (!existsSync(built) || statSync(built).mtimeMs < sources) {
    console.log('Building …')
    execFileSync(at('node_modules', '.bin', 'node'), [at('scripts', 'build.mjs')], {
      cwd: root,
      stdio: 'inherit',
    })
  }
}
