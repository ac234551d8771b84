// Makes a fresh clone ready, and does nothing when it is: installs what the lock file names, then builds.
// It runs on whatever Node the machine has, before ours is installed, so it uses nothing new.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const at = (...parts) => join(root, ...parts)

/** When the newest file below a folder was written. */
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
