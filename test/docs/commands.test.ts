import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { createProgram } from '../../src/cli/run-command.ts'
import { fromEnvironment } from '../../src/config/environment.ts'
import type { Source } from '../../src/letter/letter.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/index.ts'
import { redrive } from '../cli/run-cli.ts'
import { aFolder } from '../folders.ts'
import {
  readCommands,
  readExamples,
  readSpans,
  writtenPages,
  type DocumentedCommand,
} from './commands.ts'

const root = join(import.meta.dirname, '../..')
const program = await createProgram([])
const commands = readCommands()
const placeOf = ({ page, line, words }: DocumentedCommand): string =>
  `${page}:${line}: ${words.join(' ')}`

/** Every command of the program, with those below. */
function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)]
}

/** What the parser says about the arguments, without running the command. */
function problemOf({ words, inText }: DocumentedCommand): string | undefined {
  // A command that is only named may lack its arguments, and prints its help.
  const named = ['commander.missingArgument', 'commander.missingMandatoryOptionValue']
  const allowed = ['commander.help', 'commander.helpDisplayed', ...(inText ? named : [])]
  try {
    program.parse(words.slice(1), { from: 'user' })
    return undefined
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return allowed.includes(code) ? undefined : message
  }
}

beforeAll(() => {
  for (const command of allCommands(program)) {
    command.configureOutput({ writeOut: () => {}, writeErr: () => {} })
    if (command.commands.length === 0) command.action(() => {})
  }
})

describe('commands in README.md, CONTRIBUTING.md and docs/', () => {
  it('have the commands, arguments and options of the program', () => {
    const documented = commands.filter(({ words }) => words[0] === 'redrive')
    expect(documented.length).toBeGreaterThan(100)
    const wrong = documented.flatMap((command) => {
      const problem = problemOf(command)
      return problem === undefined ? [] : [`${placeOf(command)}: ${problem}`]
    })
    expect(wrong).toEqual([])
  })

  it('have them in the examples of --help, too', () => {
    let help = ''
    const wrong = allCommands(program).flatMap((command) => {
      help = ''
      command.configureOutput({ writeOut: (text) => void (help += text) })
      command.outputHelp()
      return readExamples(help).flatMap((words) => {
        const problem = problemOf({ page: 'redrive help', line: 0, words, inText: false })
        return problem === undefined ? [] : [`${words.join(' ')}: ${problem}`]
      })
    })
    expect(help).not.toBe('')
    expect(wrong).toEqual([])
  })

  it('name scripts of package.json, with options that the scripts read', () => {
    const wrong = commands.filter(({ words: [tool, verb = '', name = '', ...args] }) => {
      if (tool !== 'npm' || verb === 'install') return false
      const script = (manifest.scripts as Record<string, string>)[verb === 'run' ? name : verb]
      if (script === undefined) return !['init', 'pkg'].includes(verb)
      return optionsOf(args).some((option) => !readsOption(script, option))
    })
    expect(wrong.map(placeOf)).toEqual([])
  })

  it('run files that exist', () => {
    const wrong = commands.filter(({ page, words: [tool, file = ''] }) => {
      const isOurs = tool === 'node' && page !== 'docs/getting-started.md' && !file.startsWith('-')
      return isOurs && !existsSync(join(root, file))
    })
    expect(wrong.map(placeOf)).toEqual([])
  })
})

const optionsOf = (words: readonly string[]): string[] =>
  words.flatMap((word) => /^--([a-z-]+)/.exec(word)?.[1] ?? [])

/** Whether a file in the folder of a script has the name of the option. */
function readsOption(script: string, option: string): boolean {
  const [, folder] = /node (\S+)\/[^/]+$/.exec(script) ?? []
  if (folder === undefined) return false
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(ts|mjs)$/.test(path))
    .some((path) =>
      new RegExp(`['"]?\\b${option}\\b['"]?:|['-]${option}\\b`).test(
        readFileSync(join(root, folder, path), 'utf8'),
      ),
    )
}

describe('sentences in README.md, CONTRIBUTING.md and docs/', () => {
  const spans = writtenPages.flatMap((page) =>
    readSpans(page).map(({ line, code }) => ({ page, line, code })),
  )

  it('name options that a command or a script has', () => {
    const known = new Set(
      allCommands(program).flatMap(({ options }) => options.map(({ long }) => long?.slice(2))),
    )
    const scripts = Object.values(manifest.scripts)
    const wrong = spans
      .filter(({ code }) => /^([a-z]+ )*--[a-z]/.test(code))
      .flatMap(({ page, line, code }) =>
        optionsOf(code.split(' '))
          .filter(
            (option) => !known.has(option) && !scripts.some((one) => readsOption(one, option)),
          )
          .map((option) => `${page}:${line}: --${option}`),
      )
    expect(wrong).toEqual([])
  })

  it('name REDRIVE_ variables that are read', () => {
    const wrong = writtenPages.flatMap((page) =>
      [...new Set(readFileSync(join(root, page), 'utf8').match(/\bREDRIVE_[A-Z_]*[A-Z]\b/g))]
        .filter((name) => {
          const { problems } = fromEnvironment({ REDRIVE_LETTER_ID: 'x', [name]: '' }, () => '')
          return problems.some(({ text }) => text.startsWith('unknown variable'))
        })
        .map((name) => `${page}: ${name}`),
    )
    expect(wrong).toEqual([])
  })

  it('describe every command in docs/guides/cli.md', () => {
    const table = readFileSync(join(root, 'docs/guides/cli.md'), 'utf8').split('## Commands')[1]!
    const rows = [...table.matchAll(/^\| (`[^|]*`) +\|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([a-z]+)/g)].map((match) => match[1]!),
    )
    const names = program.commands.map((command) => command.name()).filter((one) => one !== 'help')
    expect(names.filter((name) => !rows.includes(name))).toEqual([])
    const real = allCommands(program).flatMap((command) => [command.name(), ...command.aliases()])
    expect(rows.filter((name) => !real.includes(name))).toEqual([])
  })
})

/** Commands that are checked but not run, and why. */
const notRun: readonly (readonly [RegExp, string])[] = [
  [/--server|https?:/, 'needs a server'],
  [/postgres:|redis:/, 'needs a database of the reader'],
  [/^redrive (serve|work|tail|demo)\b|--watch/, 'runs until it is stopped'],
  [/--wait/, 'needs a worker'],
  [/^redrive pipeline/, 'needs Kafka'],
  [/^redrive alerts (acknowledge|test)/, 'needs a raised alert, or a target'],
  [/^redrive bulk (run|resume|results|undo)/, 'needs an action that was planned before'],
  [/^redrive replay/, 'needs the mailbox of the letter'],
  [/^redrive tokens (rotate|revoke)/, 'needs a token that was created before'],
  [/^redrive erase/, 'needs a letter about this person'],
  [/^redrive keys/, 'needs a key'],
  [/^redrive audit verify --head/, 'needs the head of an earlier check'],
]

describe('commands on a store', () => {
  const folder = aFolder('redrive-commands')

  const onStore = commands
    .filter(({ words, inText }) => words[0] === 'redrive' && !inText)
    .filter(({ words, page }) => {
      if (page === 'docs/getting-started.md') return false // follow-page.ts runs them
      return !notRun.some(([pattern]) => pattern.test(words.join(' ')))
    })

  beforeAll(async () => {
    const store = sqliteStore({ path: join(folder, 'redrive.db') })
    await store.open()
    const source: Source = { kind: 'workflow', name: 'sweep', taskId: 'wf_abc123', targets: [] }
    const ids = ['0198c0de', '01995c3a', '0199e3f2', '019a0000']
    await store.add(
      ids.map((id, index) =>
        aLetter({
          id: `${id}-0000-7000-8000-00000000000${index}`,
          queue: 'charge-card',
          state: index % 2 === 0 ? 'pending' : 'parked',
          metadata: { customer: 'acme' },
          ...(index === 0 ? { source } : {}),
        }),
      ),
    )
    await store.close()
  })

  it.each([...new Set(onStore.map(({ page }) => page))])('run in order: %s', async (page) => {
    const cwd = join(folder, page.replaceAll('/', '-'))
    for (const name of ['.redrive', 'new', 'deploy'])
      mkdirSync(join(cwd, name), { recursive: true })
    for (const name of ['redrive.db', 'letters.db', 'restored.db', '.redrive/demo.db'])
      cpSync(join(folder, 'redrive.db'), join(cwd, name))
    writeFileSync(join(cwd, 'deploy/redrive.yaml'), 'store: sqlite:redrive.db\n')
    for (const command of onStore.filter((one) => one.page === page)) {
      const words = command.words.slice(1).map((word) => word.replace('/mnt/new/', 'new/'))
      const { exit, err } = await redrive(words, { cwd, env: { USER: 'mia' } })
      expect({ exit, err }, placeOf(command)).toMatchObject({ exit: 0 })
    }
  })

  it('are run, or have a reason not to that is in use', () => {
    const lines = commands.map(({ words }) => words.join(' '))
    const unused = notRun.filter(([pattern]) => !lines.some((line) => pattern.test(line)))
    expect(unused.map(([, reason]) => reason)).toEqual([])
  })
})
