import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'

/** Says what happened, and offers to undo it for a while. */
export function showUndo(message: string, onUndo: () => void): void {
  const id = notifications.show({
    autoClose: 10_000,
    withCloseButton: true,
    message: (
      <Group justify="space-between" gap={8} wrap="nowrap">
        <span>{message}</span>
        <Button
          variant="default"
          onClick={() => {
            notifications.hide(id)
            onUndo()
          }}
        >
          Undo
        </Button>
      </Group>
    ),
  })
}
