// `npm run newcomer`: in a clean clone, starts the server with `npm start` and looks at its
// dashboard. Then packs the clone, and installs the tarball in empty projects outside of it: runs
// the code blocks of README.md on the oldest supported Node versions and on the newest, and follows
// docs/getting-started.md.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { readBlocks } from '../docs/blocks.ts'
import { followPage } from '../docs/follow-page.ts'
import { takeFirstLook } from './first-look.ts'
import { runSync, trySync } from '../processes.ts'

const root = join(import.meta.dirname, '../..')
const nodeVersions = ['22.23.3', '24.15.0', '24']

const folder = mkdtempSync(join(tmpdir(), 'redrive-newcomer-'))
const npm = (cwd: string, ...args: string[]): string =>
  runSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd }).trim()

/** Appended to a block, which would otherwise run until it is interrupted. */
const end = '\nawait dlq.close()\nprocess.exit(0)\n'

/** Ends a step that hangs. A busy machine may need minutes to install and build. */
const hangs = (): AbortSignal => AbortSignal.timeout(20 * 60_000)

let failed = 0
function report(what: string, ok: boolean, output = ''): void {
  console.log(`${ok ? '✓' : '✗'} ${what}`)
  if (!ok) console.log(output)
  if (!ok) failed++
}

async function step(what: string, action: () => Promise<void>): Promise<void> {
  const startMs = performance.now()
  const error: unknown = await action().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  const seconds = Math.round((performance.now() - startMs) / 1000)
  report(`${what} (${seconds} s)`, error === undefined, String(error))
}

/** The blocks of README.md on one version of Node. */
function runReadme(tarball: string, version: string): void {
  const project = join(folder, `node-${version}`)
  mkdirSync(project)
  const manifest = { type: 'module', private: true, allowScripts: { node: true } }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  npm(project, 'install', `node@${version}`)
  npm(project, 'install', tarball)
  const node = join(project, 'node_modules/node/bin/node')
  const is = runSync(node, ['--version']).trim()
  const run = (...args: string[]) => trySync(node, args, { cwd: project })
  for (const block of readBlocks('ts').filter(({ page }) => page === 'README.md')) {
    const file = join(project, `readme-${block.number}.ts`)
    writeFileSync(file, block.code + end)
    const { status, stderr } = run(file)
    report(`Node ${is}: block ${block.number} of README.md runs`, status === 0, stderr)
  }
  const cli = join(project, 'node_modules/.bin/redrive')
  const { status, stdout, stderr } = run(cli, 'list', '--store', 'sqlite:redrive.db')
  const kept = stdout.includes('charge-card') && stdout.includes('send-mail')
  report(`Node ${is}: redrive list shows the stored letters`, status === 0 && kept, stdout + stderr)
}

try {
  const clone = join(folder, 'clone')
  runSync('git', ['clone', '--quiet', '--depth=1', `file://${root}`, clone])
  await step('npm start shows a live dashboard, in which a letter is retried', () =>
    takeFirstLook(clone, hangs()),
  )
  const tarball = join(clone, npm(clone, 'pack', '--silent').split('\n').at(-1)!)
  await step('docs/getting-started.md can be followed', () =>
    followPage('docs/getting-started.md', {
      folder,
      env: {
        ...process.env,
        NO_COLOR: '1',
        PATH: [join(clone, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
      },
      replace: [['npm install redrive', `npm install ${tarball}`]],
      signal: hangs(),
    }),
  )
  for (const version of nodeVersions) runReadme(tarball, version)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = failed > 0 ? 1 : 0
