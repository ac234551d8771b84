import type { ReactNode } from 'react'
import { Button, Group, Modal, Stack, Text } from '@mantine/core'

/** Asks before an action that cannot be undone. */
export function ConfirmDialog({
  title,
  explanation,
  action,
  danger = false,
  onConfirm,
  onClose,
}: {
  title: string
  /** What will happen. */
  explanation: ReactNode
  /** The text of the button, with the number if there are many. */
  action: string
  danger?: boolean
  onConfirm: () => void
  onClose: () => void
}) {
  return (
    <Modal opened onClose={onClose} title={title}>
      <Stack gap={16}>
        <Text size="sm" component="div">
          {explanation}
        </Text>
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button onClick={onConfirm} {...(danger ? { color: 'red' } : {})}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
