import type { PayloadDiff } from '../letter/payload-diff.ts'
import { escapeLine, paint } from './print.ts'

const maxShown = 20

/** What changes in a payload, for people. */
export function formatDiff(diff: PayloadDiff): string {
  const lines: string[] = []
  const removed = (text: string): void => void lines.push(paint('red', `- ${escapeLine(text)}`))
  const added = (text: string): void => void lines.push(paint('green', `+ ${escapeLine(text)}`))
  if (diff.kind === 'json')
    for (const { path, before, after } of diff.changes.slice(0, maxShown)) {
      lines.push(escapeLine(path === '' ? 'the document' : path))
      if (before !== undefined) removed(JSON.stringify(before))
      if (after !== undefined) added(JSON.stringify(after))
    }
  if (diff.kind === 'text')
    for (const { line, before, after } of diff.changes.slice(0, maxShown)) {
      lines.push(`line ${line}`)
      before.forEach(removed)
      after.forEach(added)
    }
  if (diff.kind === 'bytes') lines.push(`${diff.before.size} bytes become ${diff.after.size}`)
  if ('changes' in diff && diff.changes.length > maxShown)
    lines.push(`… ${diff.changes.length - maxShown} more changes`)
  return `${lines.join('\n')}\n`
}
