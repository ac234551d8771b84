// `npm run newcomer`: packs a clean clone, installs the tarball in an empty project, and runs the
// code blocks of README.md there, on the oldest supported Node versions and on the newest.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readBlocks } from '../docs/blocks.ts'

const root = join(import.meta.dirname, '../..')
const nodeVersions = ['22.23.3', '24.15.0', '24']

const folder = mkdtempSync(join(tmpdir(), 'redrive-newcomer-'))
const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    encoding: 'utf8',
  }).trim()

/** Appended to a block, which would otherwise run until it is interrupted. */
const end = '\nawait dlq.close()\nprocess.exit(0)\n'

let failed = 0
function report(what: string, ok: boolean, output = ''): void {
  console.log(`${ok ? '✓' : '✗'} ${what}`)
  if (!ok) console.log(output)
  if (!ok) failed++
}

try {
  const clone = join(folder, 'clone')
  execFileSync('git', ['clone', '--quiet', '--depth=1', `file://${root}`, clone])
  const tarball = join(clone, npm(clone, 'pack', '--silent').split('\n').at(-1)!)
  for (const version of nodeVersions) {
    const project = join(folder, `node-${version}`)
    mkdirSync(project)
    const manifest = { type: 'module', private: true, allowScripts: { node: true } }
    writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
    npm(project, 'install', `node@${version}`)
    npm(project, 'install', tarball)
    const node = join(project, 'node_modules/node/bin/node')
    const is = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
    for (const block of readBlocks('ts').filter(({ page }) => page === 'README.md')) {
      const file = join(project, `readme-${block.number}.ts`)
      writeFileSync(file, block.code + end)
      const { status, stderr } = spawnSync(node, [file], { cwd: project, encoding: 'utf8' })
      report(`Node ${is}: block ${block.number} of README.md runs`, status === 0, stderr)
    }
    const cli = join(project, 'node_modules/.bin/redrive')
    const { status, stdout, stderr } = spawnSync(
      node,
      [cli, 'list', '--store', 'sqlite:redrive.db'],
      {
        cwd: project,
        encoding: 'utf8',
      },
    )
    const kept = stdout.includes('charge-card') && stdout.includes('send-mail')
    report(
      `Node ${is}: redrive list shows the stored letters`,
      status === 0 && kept,
      stdout + stderr,
    )
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = failed > 0 ? 1 : 0
