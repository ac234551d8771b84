import { useState } from 'react'
import { Button, Group, Modal, Radio, Stack, TextInput } from '@mantine/core'

export type Decision = 'requeue' | 'resolve' | 'discard'

const choices: readonly [Decision, string, string][] = [
  ['requeue', 'Requeue', 'A worker runs it again, with new retries.'],
  ['resolve', 'Resolve', 'It counts as done, without another run.'],
  ['discard', 'Discard', 'It is archived: hidden from lists. You can restore it.'],
]

/** Asks what happens to a parked letter. */
export function ReviewDialog({
  onDecide,
  onClose,
}: {
  onDecide: (decision: Decision, note: string) => void
  onClose: () => void
}) {
  const [decision, setDecision] = useState<Decision>('requeue')
  const [note, setNote] = useState('')
  const label = choices.find(([name]) => name === decision)![1]
  return (
    <Modal opened onClose={onClose} title="Review this letter">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onDecide(decision, note.trim())
        }}
      >
        <Stack gap={16}>
          <Radio.Group label="Decision" value={decision} onChange={setDecision}>
            <Stack gap={8} mt={8}>
              {choices.map(([value, name, effect]) => (
                <Radio key={value} value={value} label={name} description={effect} size="xs" />
              ))}
            </Stack>
          </Radio.Group>
          <TextInput
            label="Note"
            description="Stored in the history of the letter."
            value={note}
            maxLength={1000}
            onChange={({ currentTarget }) => setNote(currentTarget.value)}
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">{label}</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
