import { Code, Group, Modal, Stack, Text } from '@mantine/core'
import type { OutputOf } from 'redrive/api'
import { CopyButton } from '../../ui/copy-button.tsx'

/** Shows the secret of a token. The server keeps only a hash of it. */
export function SecretDialog({
  created: { token, info },
  onClose,
}: {
  created: OutputOf<'createToken'>
  onClose: () => void
}) {
  return (
    <Modal opened onClose={onClose} title={`Token of ${info.name}`} closeOnClickOutside={false}>
      <Stack gap={16}>
        <Text size="sm">Copy the token now: it is shown only this once.</Text>
        <Code block>{token}</Code>
        <Group justify="flex-end">
          <CopyButton text={token} label="Copy the token" />
        </Group>
      </Stack>
    </Modal>
  )
}
