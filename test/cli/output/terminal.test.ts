import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { widthOf } from '../../../src/cli/print.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { spawn } from '../../processes.ts'
import { aFolder, main, aStoreFile } from '../run-cli.ts'

/*
 * The command line on a pseudo-terminal. It needs the program `script` of util-linux, which is part
 * of every Linux distribution, and `stty` of coreutils.
 */

const folder = aFolder()
const timeout = 60_000

interface Terminal {
  /** Resolves when the screen has got this text. */
  shows(text: string | RegExp): Promise<void>
  type(text: string): void
  /** Everything that was printed, and the exit code. */
  end: Promise<{ screen: string; exit: number | null }>
}

/**
 * Runs a command on a terminal of 60 columns. CI is set as on build servers, where Node alone would
 * decide against colours: the terminal counts, not the machine.
 */
function onTerminal(args: readonly string[]): Terminal {
  const quoted = [process.execPath, main, ...args].map((arg) => `'${arg}'`).join(' ')
  const { PATH, HOME } = process.env
  const child = spawn(
    'script',
    ['--quiet', '--return', '--command', `stty cols 60 rows 24; exec ${quoted}`, '/dev/null'],
    { env: { PATH, HOME, TERM: 'xterm', CI: 'true' } },
  )
  let screen = ''
  let check = (): void => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    check()
  })
  const end = new Promise<{ screen: string; exit: number | null }>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exit) => resolve({ screen, exit }))
  })
  return {
    end,
    type: (text) => void child.stdin.write(text),
    shows: (text) =>
      new Promise((resolve, reject) => {
        check = () => {
          if (stripVTControlCharacters(screen).search(text) >= 0) resolve()
        }
        check()
        void end.then(() => reject(new Error(`the command has ended: ${screen}`)))
      }),
  }
}

const manyLetters = Array.from({ length: 1200 }, () => aLetter({ state: 'resolved' }))

describe('on a terminal', () => {
  it('fits tables into its width, in colour', { timeout }, async () => {
    const url = await aStoreFile(folder, [
      aLetter({ queue: '顧客を同期する', state: 'parked' }),
      aLetter({ failure: { ...aLetter().failure, message: 'much too long '.repeat(20) } }),
    ])
    const { screen, exit } = await onTerminal(['list', '--store', url]).end
    expect(exit).toBe(0)
    expect(screen).toContain('\u001b[31mparked')
    const lines = stripVTControlCharacters(screen).split(/\r?\n/)
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) expect(widthOf(line), line).toBeLessThanOrEqual(60)
    expect(screen).toContain('…')
  })

  it('asks before it acts on a filter, and takes no for an answer', { timeout }, async () => {
    const url = await aStoreFile(folder, [aLetter({ state: 'exhausted' })])
    const terminal = onTerminal(['archive', '--all', '--store', url])
    await terminal.shows('[y/N]')
    terminal.type('n\r')
    const { screen, exit } = await terminal.end
    expect(screen).toContain('Nothing was changed.')
    expect(exit).toBe(0)
  })

  it('shows a bar while it exports many letters', { timeout }, async () => {
    const url = await aStoreFile(folder, manyLetters)
    const file = join(folder, 'many.jsonl')
    const { screen, exit } = await onTerminal(['export', file, '--store', url]).end
    expect(exit).toBe(0)
    expect(screen).toMatch(/export [█░]{20} \d+ %  [\d,]+ of 1,200/)
    expect(screen).toContain('1,200 letters written')
  })

  it('prints new letters with tail until Ctrl-C, which is a success', { timeout }, async () => {
    const url = await aStoreFile(folder, [aLetter({ queue: 'first' })])
    const terminal = onTerminal(['tail', '--store', url])
    await terminal.shows('first pending it failed')
    terminal.type('\u0003')
    expect((await terminal.end).exit).toBe(0)
  })
})
