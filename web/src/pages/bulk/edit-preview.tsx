import { Stack, Text } from '@mantine/core'
import type { BulkActionView } from 'redrive/api'
import { formatBytes } from '../../format/number.ts'
import { Id } from '../../ui/id.tsx'
import classes from './bulk.module.css'

type Preview = NonNullable<BulkActionView['preview']>[number]
type Diff = NonNullable<Preview['diff']>

const maxLetters = 5
const maxChanges = 20
const maxChars = 500

/** What an edit would change in some letters of the plan. */
export function EditPreview({ preview }: { preview: readonly Preview[] }) {
  return (
    <Stack gap={8}>
      {preview.slice(0, maxLetters).map(({ id, diff, error }) => (
        <div key={id} className={classes.diff}>
          <Text size="xs" c="dimmed" component="div">
            Letter <Id id={id} />
          </Text>
          {error !== undefined && <span className={classes.before}>{clip(error)}</span>}
          {diff && <Changes diff={diff} />}
        </div>
      ))}
    </Stack>
  )
}

function Changes({ diff }: { diff: Diff }) {
  switch (diff.kind) {
    case 'same':
      return <span className="dim">No change.</span>
    case 'bytes':
      return (
        <span>
          Binary payload: {formatBytes(diff.before.size)} → {formatBytes(diff.after.size)}
        </span>
      )
    case 'json':
      return diff.changes.slice(0, maxChanges).map(({ path, before, after }) => (
        <div key={path}>
          <bdi className="dim">{path === '' ? 'whole payload' : clip(path)}</bdi>
          {before !== undefined && <Line sign="−" text={JSON.stringify(before)} />}
          {after !== undefined && <Line sign="+" text={JSON.stringify(after)} />}
        </div>
      ))
    case 'text':
      return diff.changes.slice(0, maxChanges).map(({ line, before, after }) => (
        <div key={line}>
          <span className="dim">line {line}</span>
          {before.length > 0 && <Line sign="−" text={before.join('\n')} />}
          {after.length > 0 && <Line sign="+" text={after.join('\n')} />}
        </div>
      ))
  }
}

function Line({ sign, text }: { sign: '−' | '+'; text: string }) {
  return (
    <bdi className={sign === '+' ? classes.after : classes.before}>
      {sign} {clip(text)}
    </bdi>
  )
}

function clip(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
}
