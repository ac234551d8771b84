import { useState } from 'react'
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'

/** Asks why before an action that others will want to understand. */
export function ReasonDialog({
  title,
  explanation,
  action,
  label = 'Reason',
  required = true,
  danger = false,
  onConfirm,
  onClose,
}: {
  title: string
  /** What will happen. */
  explanation: string
  /** The text of the button. */
  action: string
  label?: string
  required?: boolean
  danger?: boolean
  onConfirm: (reason: string) => void
  onClose: () => void
}) {
  const [reason, setReason] = useState('')
  return (
    <Modal opened onClose={onClose} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onConfirm(reason.trim())
        }}
      >
        <Stack gap={16}>
          <Text size="sm">{explanation}</Text>
          <TextInput
            label={label}
            value={reason}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
            required={required}
            maxLength={1000}
            data-autofocus
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" {...(danger ? { color: 'red' } : {})}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
