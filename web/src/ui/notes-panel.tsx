import { useState } from 'react'
import { Button, Group, Stack, Text, Textarea } from '@mantine/core'
import { Panel } from './page.tsx'
import { Time } from './time.tsx'
import { showProblem } from './toast.ts'

interface Note {
  at: string
  by: string
  text: string
}

const maxNote = 4000

/** Notes of people, the newest first, and a form for another one. */
export function NotesPanel({
  notes,
  onAdd,
}: {
  notes: readonly Note[]
  /** Undefined: the reader may not add notes. */
  onAdd: ((text: string) => Promise<unknown>) | undefined
}) {
  return (
    <Panel title="Notes">
      <Stack gap={12}>
        {onAdd && <NoteForm onAdd={onAdd} />}
        {notes.length === 0 && (
          <Text size="sm" c="dimmed">
            No notes yet.
          </Text>
        )}
        {notes.toReversed().map(({ at, by, text }) => (
          <div key={`${at} ${by}`}>
            <Text size="sm" c="dimmed" component="div">
              <bdi>{by.slice(0, 200)}</bdi>, <Time at={at} />
            </Text>
            <Text size="sm" className="wrap">
              <bdi>{text}</bdi>
            </Text>
          </div>
        ))}
      </Stack>
    </Panel>
  )
}

function NoteForm({ onAdd }: { onAdd: (text: string) => Promise<unknown> }) {
  const [text, setText] = useState('')
  const [isSaving, setSaving] = useState(false)
  const save = async (): Promise<void> => {
    setSaving(true)
    try {
      await onAdd(text.trim())
      setText('')
    } catch (error) {
      showProblem(error)
    } finally {
      setSaving(false)
    }
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <Stack gap={8}>
        <Textarea
          aria-label="New note"
          placeholder="What you found out, for the next person"
          autosize
          minRows={2}
          maxRows={10}
          maxLength={maxNote}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit" variant="default" loading={isSaving} disabled={text.trim() === ''}>
            Add note
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
