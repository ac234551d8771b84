import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorTable } from '../src/errors.ts'
import manifest from '../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

function filesBelow(folder: string, ending = '.ts'): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .map((path) => join(folder, path))
    .sort()
}

const sources = filesBelow('src')

/** A module is a folder or a file of src. */
function moduleOf(path: string): string {
  return path.split('/')[1]!.replace(/\.ts$/, '')
}

function importsOf(path: string): string[] {
  const text = read(path)
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    (match) => match[1]!,
  )
  return specifiers.map((specifier) => relative(root, join(root, dirname(path), specifier)))
}

/** The table in ARCHITECTURE.md is the rule; this reads it. */
function importTable(): Map<string, string[]> {
  const section = read('ARCHITECTURE.md').split('## Imports')[1]!.split('\n## ')[0]!
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  return new Map(
    rows.map((row) => {
      const [, name, allowed] = row.split('|').map((cell) => cell.trim())
      return [
        name!.replaceAll('`', ''),
        [...allowed!.matchAll(/`([^`]+)`/g)].map((match) => match[1]!),
      ]
    }),
  )
}

describe('modules', () => {
  const table = importTable()

  it('are those in the import table of ARCHITECTURE.md', () => {
    expect([...table.keys()].sort()).toEqual([...new Set(sources.map(moduleOf))].sort())
  })

  it('import only what the table allows', () => {
    const forbidden = sources.flatMap((path) => {
      const allowed = table.get(moduleOf(path)) ?? []
      return importsOf(path)
        .filter((target) => {
          const name = moduleOf(target)
          return name !== moduleOf(path) && !allowed.includes(name) && !allowed.includes('all')
        })
        .map((target) => `${path} imports ${target}`)
    })
    expect(forbidden).toEqual([])
  })

  it('have no import cycle', () => {
    const done = new Set<string>()
    const visit = (path: string, trail: readonly string[]): string | undefined => {
      if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path].join(' -> ')
      if (done.has(path)) return undefined
      const cycle = importsOf(path).map((target) => visit(target, [...trail, path]))
      done.add(path)
      return cycle.find((found) => found !== undefined)
    }
    expect(sources.map((path) => visit(path, [])).filter(Boolean)).toEqual([])
  })

  it('are few: at most 8 files and 26 folders', () => {
    const inside = readdirSync(join(root, 'src'), { withFileTypes: true })
    const folders = inside.filter((entry) => entry.isDirectory())
    expect(folders.length).toBeLessThanOrEqual(26)
    expect(inside.length - folders.length).toBeLessThanOrEqual(8)
    expect(table.size).toBeLessThanOrEqual(34)
  })

  it('drivers never import a sibling', () => {
    const driverOf = (path: string): string | undefined => {
      const driver = /^src\/(?:stores|mailboxes)\/[^/]+(?=\/)/.exec(path)?.[0]
      return driver === 'src/stores/rows' ? undefined : driver
    }
    const crossing = sources.filter((path) =>
      importsOf(path)
        .map(driverOf)
        .some((driver) => driverOf(path) && driver && driver !== driverOf(path)),
    )
    expect(crossing).toEqual([])
  })

  it('have specific names', () => {
    const banned =
      /\/(utils|helpers|common|lib|types|interfaces|misc|shared|core|manager|service|base|impl)(\.ts|\/)/
    expect(sources.filter((path) => banned.test(path))).toEqual([])
  })
})

describe('time and randomness', () => {
  const banned =
    /\b(Date\.now|new Date\(\)|performance\.now|Math\.random|setTimeout|setInterval|setImmediate|randomUUID|randomBytes|randomInt|randomFillSync|getRandomValues|process\.hrtime|timers\/promises)\b/
  /** Files that may use the real clock, and why. */
  const exempt = new Map([
    ['src/clock/clock.ts', 'it is the clock'],
    ['src/clock/secret.ts', 'a secret must be unpredictable in tests as well'],
    ['src/api/event-stream.ts', 'it runs in browsers, where there is no clock of ours'],
    ['src/testing/fake-clock.ts', 'it lets promises settle between timers'],
  ])

  it('come from the clock', () => {
    const found = sources
      .filter((path) => !exempt.has(path))
      .flatMap((path) => {
        const code = read(path).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        const use = banned.exec(code)?.[0]
        return use === undefined ? [] : [`${path}: ${use}`]
      })
    expect(found).toEqual([])
  })
})

describe('tests', () => {
  const tests = filesBelow('test', '.test.ts')

  it('mirror src: each has the file that it tests', () => {
    const apart = [
      'test/tidy.test.ts',
      'test/contract/',
      'test/seeds/',
      'test/simulation/',
      'test/crash/',
      'test/examples',
      'test/bad-input/',
      'test/docs/',
      'test/exit/',
      'test/faults/',
      'test/load/',
      'test/package/',
      'test/scripts/',
      'test/servers/',
      'test/server/attacks/',
      'test/web/',
      'test/cli/output/',
    ]
    const orphans = tests
      .filter((path) => !apart.some((prefix) => path.startsWith(prefix)))
      .filter((path) => {
        const mirrored = path.replace(/^test/, 'src').replace(/\.test\.ts$/, '')
        const candidates = [
          `${mirrored}.ts`,
          mirrored,
          `${dirname(mirrored)}/${dirname(mirrored).split('/').at(-1)}.ts`,
        ]
        return !candidates.some((candidate) => existsSync(join(root, candidate)))
      })
    expect(orphans).toEqual([])
  })

  /**
   * Files without a test of their own are covered by the tests of their module: a driver by the
   * contract that runs on it, a part of a module by the tests of the whole.
   */
  it('cover every source file: by a test that mirrors it, or by the tests of its folder', () => {
    const testFolders = new Set(tests.map((path) => dirname(path)))
    const entries = ['src/index.ts', 'src/store.ts', 'src/mailbox.ts', 'src/assembly.ts']
    const uncovered = sources
      .filter((path) => !path.startsWith('src/pipeline/proto/') && !entries.includes(path))
      .filter((path) => {
        const mirror = path.replace(/^src/, 'test').replace(/\.ts$/, '.test.ts')
        if (tests.includes(mirror)) return false
        return ![dirname(mirror), dirname(dirname(mirror))].some((folder) =>
          testFolders.has(folder),
        )
      })
    expect(uncovered).toEqual([])
  })

  it('do not sleep', () => {
    const sleepers = tests.filter(
      (path) =>
        path !== 'test/tidy.test.ts' &&
        /setTimeout\(\s*(resolve|done|r)\b|timers\/promises/.test(read(path)),
    )
    expect(sleepers).toEqual([])
  })

  const testCode = filesBelow('test')

  it('start processes only with test/processes.ts, which ends them', () => {
    const starters = testCode.filter((path) => read(path).includes("'node:child_process'"))
    expect(starters.filter((path) => path !== 'test/tidy.test.ts')).toEqual(['test/processes.ts'])
  })

  it('create folders only in the folder of the run, which is removed after it', () => {
    /** Files with folders elsewhere, and why. */
    const elsewhere = new Map([
      ['test/servers/control.ts', 'the user of a server has no access to the folder of the run'],
      ['test/docs/blocks.test.ts', 'code that imports the package by name must be inside of it'],
    ])
    const creators = testCode
      .filter((path) => !elsewhere.has(path) && path !== 'test/tidy.test.ts')
      .filter((path) => /mkdtemp(Sync)?\((?!join\((tmpdir\(\)|folder))/.test(read(path)))
    expect(creators).toEqual([])
  })

  it('wait for states with test/wait-for.ts, which gives a busy machine enough time', () => {
    const others = testCode.filter(
      (path) =>
        !['test/wait-for.ts', 'test/tidy.test.ts'].includes(path) &&
        read(path).includes('vi.waitFor('),
    )
    expect(others).toEqual([])
  })

  it('register hooks in a shared module only when a test file calls it', () => {
    // Files share a worker, in which such a module runs once.
    const shared = testCode.filter((path) => !path.endsWith('.test.ts') && path !== 'test/leaks.ts')
    const hooks = shared.filter((path) => /^(before|after)(All|Each)\(/m.test(read(path)))
    expect(hooks).toEqual([])
  })

  it('have titles in the present tense, without "should"', () => {
    const wishes = tests.filter((path) => /\b(it|test)\(\s*['"`][^'"`]*\bshould\b/.test(read(path)))
    expect(wishes).toEqual([])
  })
})

describe('language', () => {
  const code = ['src', 'web/src', 'test', 'bench', 'examples', 'scripts']
    .flatMap((folder) => ['.ts', '.tsx', '.mjs'].flatMap((ending) => filesBelow(folder, ending)))
    .filter((path) => !path.startsWith('src/pipeline/proto/'))
  const pages = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', 'CHANGELOG.md']
  const docs = filesBelow('docs', '.md').filter((path) => !path.startsWith('docs/decisions/'))

  /** Words of an earlier vocabulary that the public words of the field have replaced. */
  const replaced =
    /\b(unless said|unless told|a text|texts|gatherer|crowd|clerk|desk|onTrouble|troubleOf|anew|put off|roster|post-office|homeward)\b/i

  /** The lines of files that match, each with its place. */
  const linesOf = (paths: readonly string[], isFound: (line: string) => boolean): string[] =>
    paths.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) => (isFound(line) ? [`${path}:${index + 1}: ${line}`] : [])),
    )

  it('has none of the replaced words', () => {
    const files = [...code, ...pages, ...docs].filter((path) => path !== 'test/tidy.test.ts')
    expect(linesOf(files, (line) => replaced.test(line))).toEqual([])
  })

  it('has comment lines of at most 100 columns', () => {
    const comment = /^\s*(\/\*\*|\*|\/\/) /
    expect(linesOf(code, (line) => line.length > 100 && comment.test(line))).toEqual([])
  })

  it('has prose of at most 100 columns', () => {
    const long = [...pages, ...filesBelow('docs', '.md')].flatMap((path) => {
      const prose = read(path).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
      return prose
        .split('\n')
        .filter((line) => line.length > 100 && !/^ *\|/.test(line))
        .map((line) => `${path}: ${line}`)
    })
    expect(long).toEqual([])
  })
})

/** The anchors of the headings of a page, as GitHub and the site make them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  )
}

describe('docs', () => {
  it('the error page lists exactly the codes that exist', () => {
    const page = read('docs/reference/errors.md')
    expect([...page.matchAll(/^\| `([A-Z_]+)`/gm)].map((match) => match[1])).toEqual(
      Object.keys(errorTable),
    )
  })

  it('the troubleshooting page says what to do about each code', () => {
    const page = read('docs/troubleshooting.md')
    expect(Object.keys(errorTable).filter((code) => !page.includes(`\`${code}\``))).toEqual([])
  })

  it('docs/README.md lists every page', () => {
    const index = read('docs/README.md')
    const unlisted = filesBelow('docs', '.md')
      .map((path) => relative('docs', path))
      .filter((path) => path !== 'README.md' && !/^decisions\/|\[/.test(path))
      .filter((path) => !index.includes(`](${path})`))
    expect(unlisted).toEqual([])
  })

  it('every error code is thrown somewhere', () => {
    const thrown = sources
      .filter((path) => path !== 'src/errors.ts')
      .map(read)
      .join('\n')
    expect(Object.keys(errorTable).filter((code) => !thrown.includes(`'${code}'`))).toEqual([])
  })

  it('the README has at most 150 lines', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(150)
  })

  it('ARCHITECTURE.md has at most 250 lines', () => {
    expect(read('ARCHITECTURE.md').split('\n').length).toBeLessThanOrEqual(250)
  })

  it('every npm command that a page names exists', () => {
    const pages = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', ...filesBelow('docs', '.md')]
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/npm run ([a-z:-]+)/g)].map((match) => match[1]!),
    )
    expect(named.filter((name) => !(name in manifest.scripts))).toEqual([])
  })

  it('code on a page imports each driver that it calls from an exported path', () => {
    const exported = Object.keys(manifest.exports).map((path) => path.replace('.', 'redrive'))
    const wrong = ['README.md', ...filesBelow('docs', '.md')].flatMap((page) =>
      [...read(page).matchAll(/^```ts\n(.*?)^```/gms)].flatMap(([, code = '']) => {
        const imports = [...code.matchAll(/^import \{([^}]*)\} from '(redrive[^']*)'/gm)]
        const names = new Set(imports.flatMap(([, list = '']) => list.match(/\w+/g) ?? []))
        const drivers = code.match(/\b[a-z]+(Mailbox|Tap|Store)(?=\()/g) ?? []
        return [
          ...drivers.filter((name) => !/^(open|copy)/.test(name) && !names.has(name)),
          ...imports.map(([, , from = '']) => from).filter((from) => !exported.includes(from)),
        ].map((what) => `${page}: ${what}`)
      }),
    )
    expect(wrong).toEqual([])
  })

  it('every relative link of a page has a target', () => {
    const pages = [
      'README.md',
      'CONTRIBUTING.md',
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      ...filesBelow('docs', '.md'),
    ]
    const broken = pages.flatMap((page) =>
      [
        ...read(page)
          .replaceAll(/`[^`]*`/g, '')
          .matchAll(/\]\((?!https?:|#)([^)#]+)/g),
      ]
        .map((match) => match[1]!)
        .filter((link) => !existsSync(join(root, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    )
    expect(broken).toEqual([])
  })

  it('every link to a part of a page has its heading', () => {
    const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md')]
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
        .filter(([, link = '', anchor = '']) => {
          const target = link === '' ? page : join(dirname(page), link)
          return target.endsWith('.md') && !anchorsOf(read(target)).includes(anchor)
        })
        .map(([found]) => `${page}: ${found}`),
    )
    expect(broken).toEqual([])
  })

  it('every export of the package has its file', () => {
    const targets = Object.values(manifest.exports).filter((target) => typeof target !== 'string')
    const missing = targets
      .map((target) => target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts'))
      .filter((path) => !existsSync(join(root, path)))
    expect(missing).toEqual([])
  })
})
