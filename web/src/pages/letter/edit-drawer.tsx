import { useCallback, useState } from 'react'
import { Button, Drawer, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { InputOf, LetterView, PayloadView } from 'redrive/api'
import { api, isConflict } from '../../api/client.ts'
import { CodeDiff, CodeEditor } from '../../ui/code.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Problem } from '../../ui/problem.tsx'
import { editableText, parseEdited } from './payload-text.ts'

interface EditProps {
  letter: LetterView
  isRevealed: boolean
  onClose: () => void
  onSaved: () => void
}

/** Edits the payload: first the text, then the changes with a reason. */
export function EditDrawer({ onClose, ...props }: EditProps) {
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title="Edit the payload">
      <EditForm {...props} onClose={onClose} />
    </Drawer>
  )
}

function EditForm({ letter: shown, isRevealed, onClose, onSaved }: EditProps) {
  // A letter that changes meanwhile does not change the text that is being edited.
  const [letter] = useState(shown)
  const { payload } = letter
  const before = editableText(payload, isRevealed)
  const [text, setText] = useState(before ?? '')
  // The editor has its own text: a new initial text would replace it.
  const [initial, setInitial] = useState(text)
  const [isReview, setReview] = useState(false)
  const change = useCallback((edited: string) => setText(edited), [])
  if (before === undefined) return <NotEditable payload={payload} />
  const language = payload.json === undefined ? 'text' : 'json'
  const { error } = parseEdited(payload, text)
  if (isReview)
    return (
      <SaveForm
        letter={letter}
        before={before}
        text={text}
        onBack={() => {
          setInitial(text)
          setReview(false)
        }}
        onClose={onClose}
        onSaved={onSaved}
      />
    )
  return (
    <Stack gap={12}>
      <Text size="sm" c="dimmed">
        Version {payload.version}, {payload.contentType}. The version as captured stays stored, and
        an edit can be undone.
      </Text>
      <CodeEditor label="Payload" initial={initial} language={language} onChange={change} />
      <Text size="sm" c={error === undefined ? 'dimmed' : 'red'} role="status" mih={20}>
        {error ?? (text === before ? 'Nothing is changed yet.' : 'Changed.')}
      </Text>
      <Group justify="flex-end" gap={8}>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button disabled={error !== undefined || text === before} onClick={() => setReview(true)}>
          Review the changes
        </Button>
      </Group>
    </Stack>
  )
}

function NotEditable({ payload }: { payload: PayloadView }) {
  return payload.redacted ? (
    <Empty title="Parts of this payload are hidden">
      Saving it would store the markers in place of the hidden values. Reveal the payload first, or
      change single values with a JSON Patch: <code>redrive edit</code> in a terminal.
    </Empty>
  ) : (
    <Empty title="This payload cannot be edited here">
      It is not text. Replace its bytes with <code>redrive edit</code> in a terminal.
    </Empty>
  )
}

interface SaveProps {
  letter: LetterView
  before: string
  text: string
  onBack: () => void
  onClose: () => void
  onSaved: () => void
}

function SaveForm({ letter, before, text, onBack, onClose, onSaved }: SaveProps) {
  const { id, version, payload } = letter
  const [reason, setReason] = useState('')
  const save = useMutation({
    mutationFn: (input: InputOf<'editLetter'>) => api.editLetter(input, { ifVersion: version }),
    onSuccess: () => {
      onSaved()
      onClose()
    },
  })
  const { value } = parseEdited(payload, text)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (value) save.mutate({ id, ...value, reason: reason.trim() })
      }}
    >
      <Stack gap={12}>
        <CodeDiff
          label="Changes"
          before={before}
          after={text}
          language={payload.json === undefined ? 'text' : 'json'}
        />
        <TextInput
          label="Reason"
          description="Stored in the history of the letter and in the audit log."
          required
          maxLength={1000}
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
          data-autofocus
        />
        {save.error && isConflict(save.error) && (
          <Text size="sm" role="alert" c="red">
            The letter has changed since you opened it: it was retried, edited or moved. Copy your
            text, close this editor, and edit the letter again.
          </Text>
        )}
        {save.error && !isConflict(save.error) && <Problem error={save.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onBack}>
            Back to the text
          </Button>
          <Button type="submit" loading={save.isPending} disabled={reason.trim() === ''}>
            Save as version {payload.version + 1}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
