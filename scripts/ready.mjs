// Prepares a new clone if needed: installs the packages of the lock file, then builds what the
// arguments name. `build` is dist, `site` is the documentation in dist/docs. Runs on the Node of
// the machine, before the pinned one is installed, so it uses no new features.
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
  const startMs = Date.now()
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
  })
  writeFileSync(installed, lock)
  console.log(`── installation of packages: ${((Date.now() - startMs) / 1000).toFixed(1)} s`)
}

const isOlder = (file, sourcesMs) => !existsSync(file) || statSync(file).mtimeMs < sourcesMs
const runNode = (...args) =>
  execFileSync(at('node_modules', '.bin', 'node'), args, { cwd: root, stdio: 'inherit' })

// The last file that a build writes.
const built = at('dist', 'web', 'index.html')
if (process.argv.includes('build')) {
  const sourcesMs = Math.max(
    newest(at('src')),
    newest(at('web', 'src')),
    statSync(at('tsconfig.build.json')).mtimeMs,
  )
  if (isOlder(built, sourcesMs)) {
    console.log('Building …')
    runNode(at('scripts', 'build.mjs'))
  }
}

// The site has a reference that is made from the declarations in dist.
if (process.argv.includes('site')) {
  const sourcesMs = Math.max(newest(at('docs')), statSync(built).mtimeMs)
  if (isOlder(at('dist', 'docs', 'index.html'), sourcesMs)) {
    console.log('Building the documentation …')
    runNode(at('node_modules', 'vitepress', 'bin', 'vitepress.js'), 'build', 'docs')
  }
}
