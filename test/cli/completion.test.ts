import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { aLetter } from '../../src/testing/a-letter.ts'
import { run } from '../processes.ts'
import { aFolder, aStoreFile, main, plainEnv, redriveProcess } from './run-cli.ts'

const folder = aFolder()

/** Calls the completion function as bash does, without the package bash-completion. */
const pressTab = `
redrive() { "$NODE" "$MAIN" "$@"; }
source "$SCRIPT"
COMP_LINE="$LINE" COMP_POINT=\${#LINE}
eval "$(complete -p redrive | sed -E 's/.*-F ([^ ]+).*/\\1/')" 2> /dev/null
printf '%s\\n' "\${COMPREPLY[@]}"`

const script = join(folder, 'completion.bash')
beforeAll(async () => writeFileSync(script, (await redriveProcess(['completion', 'bash'])).out))

async function completeInBash(line: string, store: string): Promise<string[]> {
  const { stdout } = await run('bash', ['--noprofile', '--norc', '-c', pressTab], {
    env: {
      ...plainEnv,
      NODE: process.execPath,
      MAIN: main,
      SCRIPT: script,
      LINE: line,
      REDRIVE_STORE: store,
    },
  })
  return stdout.trim().split('\n')
}

describe('completion', () => {
  it.each([
    ['redrive li', ['list', 'lineage']],
    ['redrive list --st', ['--state']],
    ['redrive list --state p', ['pending', 'parked']],
    ['redrive list --order d', ['due']],
    ['redrive list --queue ch', ['charge-card']],
    ['redrive retry -q ', ['charge-card', 'refund']],
    ['redrive queue pa', ['pause', 'paused']],
    ['redrive queue pause re', ['refund']],
    ['redrive bulk plan res', ['resolve', 'restore']],
    ['redrive api getSer', ['getSeries']],
    ['redrive completion b', ['bash']],
  ])('completes "%s" in bash', async (line, values) => {
    const store = await aStoreFile(folder, [
      aLetter({ queue: 'charge-card' }),
      aLetter({ queue: 'refund' }),
    ])
    const completed = await completeInBash(line, store)
    expect(completed.toSorted()).toEqual(values.toSorted())
  })

  it('completes nothing if the store cannot be read', async () => {
    const { out, err, exit } = await redriveProcess(['complete', '--', 'list', '--queue', ''], {
      env: { REDRIVE_STORE: 'sqlite:nowhere.db' },
    })
    expect({ out: out.trim(), err, exit }).toEqual({ out: ':4', err: '', exit: 0 })
  })

  it.each(['zsh', 'fish'])('prints a script for %s', async (shell) => {
    const { out, err, exit } = await redriveProcess(['completion', shell])
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expect(out).toContain('redrive complete --')
  })
})
