import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { readExports, type Declaration } from './declarations.ts'

const root = join(import.meta.dirname, '../..')

/** The entry points of the package, such as `redrive/api`, with the names of their pages. */
export const entryPoints: { entry: string; specifier: string; declarations: string }[] =
  Object.entries(manifest.exports).flatMap(([path, target]) =>
    typeof target === 'string'
      ? []
      : [
          {
            entry: path === '.' ? 'redrive' : path.slice(2).replaceAll('/', '-'),
            specifier: path.replace('.', manifest.name),
            declarations: join(root, target.types),
          },
        ],
  )

/** The reference page of each entry point: every export with its comment and its declaration. */
export function typescriptPages(): { params: { entry: string }; content: string }[] {
  return entryPoints.map(({ entry, specifier, declarations }) => {
    const { values = [], types = [] } = Object.groupBy(readExports(declarations), (one) =>
      one.isType ? 'types' : 'values',
    )
    const content = [
      `# ${specifier}`,
      `All exports of \`${specifier}\`, from the declarations of this version.`,
      ...renderSection('Functions, classes and constants', values),
      ...renderSection('Types', types),
    ]
    return { params: { entry }, content: content.join('\n\n') }
  })
}

function renderSection(title: string, declarations: readonly Declaration[]): string[] {
  return declarations.length > 0 ? [`## ${title}`, ...declarations.flatMap(renderDeclaration)] : []
}

function renderDeclaration({ name, comment, code, base }: Declaration): string[] {
  return [
    `### ${name}`,
    ...(comment === '' ? [] : [escapeHtml(comment)]),
    fence(code),
    ...(base ? renderBase(base) : []),
  ]
}

function renderBase({ name, code, base }: Declaration): string[] {
  return [`From \`${name}\`:`, fence(code), ...(base ? renderBase(base) : [])]
}

/** The type of a constant can be inferred, and is then too long to read. */
const maxLinesOfConstant = 40

function fence(code: string): string {
  const isLong = code.startsWith('const ') && code.split('\n').length > maxLinesOfConstant
  const shown = (isLong ? code.replace(/:[\s\S]*/, ': { … }') : code)
    .replaceAll(/^ +#private;\n/gm, '')
    .replaceAll(/^ +/gm, (spaces) => spaces.slice(spaces.length / 2))
  return `\`\`\`\n${shown}\n\`\`\``
}

/** Outside of code, Vue would read tags and double braces. */
function escapeHtml(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, at) => (at % 2 === 0 ? part.replaceAll('<', '&lt;').replaceAll('{{', '{ {') : part))
    .join('')
}
