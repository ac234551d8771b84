import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The page of all events, from the comments and fields of the union in src/observer.ts. */
export function eventsPage(): string {
  const source = readFileSync(join(import.meta.dirname, '../../src/observer.ts'), 'utf8')
  const [, union = ''] = /^export type RedriveEvent =\n([\s\S]*?)\n\n/m.exec(source) ?? []
  const member =
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?\| \(?\{\s*type: '([\w-]+)'([^}]*)\}(?: & (\w+))?/g
  return [
    '# Events',
    '',
    'Listen with `dlq.on(type, listener)`, or with `dlq.on("*", listener)` for all of them. A listener',
    'gets the event after the fact: it cannot prevent or delay anything.',
    '',
    '| event | fields | when |',
    '|---|---|---|',
    ...[...union.matchAll(member)].map(([, comment = '', type, fields = '', rest]) => {
      const cells = [...fieldsOf(fields), ...(rest === undefined ? [] : [`fields of \`${rest}\``])]
      return `| \`${type}\` | ${cells.join(', ')} | ${textOf(comment)} |`
    }),
  ].join('\n')
}

function fieldsOf(fields: string): string[] {
  return fields
    .split(/[;\n]/)
    .map((field) => field.trim())
    .filter((field) => field !== '')
    .map((field) => `\`${field.replaceAll('|', String.raw`\|`)}\``)
}

function textOf(comment: string): string {
  return comment.replaceAll(/\n\s*\* ?/g, ' ').trim()
}
