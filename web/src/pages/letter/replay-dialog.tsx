import { useState } from 'react'
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import type { LetterView } from 'redrive/api'
import { nameSource } from './source.ts'

/** Asks where the message of a letter is published again. */
export function ReplayDialog({
  source,
  onReplay,
  onClose,
}: {
  source: LetterView['source']
  onReplay: (to: string) => void
  onClose: () => void
}) {
  const [to, setTo] = useState('')
  const hasAddress = source.kind === 'mailbox' || source.kind === 'pipeline'
  return (
    <Modal opened onClose={onClose} title="Replay this letter">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onReplay(to.trim())
        }}
      >
        <Stack gap={16}>
          <Text size="sm">
            {hasAddress
              ? `The message is published to ${nameSource(source)} again, unless you name another mailbox. The letter is then resolved.`
              : 'The work of this letter did not come from a mailbox. Name the mailbox to publish it to; the letter is then resolved. To run its handler again, use Retry now instead.'}
          </Text>
          <TextInput
            label="Mailbox"
            description={hasAddress ? 'Empty: the source of the letter.' : undefined}
            value={to}
            required={!hasAddress}
            maxLength={1000}
            onChange={({ currentTarget }) => setTo(currentTarget.value)}
            data-autofocus
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">Replay 1 letter</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
