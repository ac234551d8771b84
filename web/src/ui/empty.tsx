import type { ReactNode } from 'react'
import { Stack, Text } from '@mantine/core'

/** Says why there is nothing here, and what to do about it. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string
  children?: ReactNode
  action?: ReactNode
}) {
  return (
    <Stack gap={8} p={24} align="center" ta="center" miw={0}>
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Text size="sm" c="dimmed" maw="min(100%, 600px)" component="div">
          {children}
        </Text>
      )}
      {action}
    </Stack>
  )
}
