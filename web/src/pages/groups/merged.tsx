import { Button, Group, Stack, Text } from '@mantine/core'
import type { GroupDetailView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { useCan } from '../../app/session.tsx'
import { Id } from '../../ui/id.tsx'
import { Panel } from '../../ui/page.tsx'
import { useGroupAction } from './use-group-action.ts'

/** The fingerprints that were merged into a group. Nothing if there are none. */
export function Merged({ group: { fingerprint, merged = [] } }: { group: GroupDetailView }) {
  const can = useCan()
  const { mutate, isPending } = useGroupAction(fingerprint)
  if (merged.length === 0) return null
  return (
    <Panel title="Merged groups">
      <Stack gap={8}>
        <Text size="sm" c="dimmed">
          Letters with these fingerprints belong to this group, also later ones.
        </Text>
        {merged.map((one) => (
          <Group key={one} justify="space-between">
            <Id id={one} whole />
            {can('group:edit') && (
              <Button
                variant="default"
                loading={isPending}
                title="Letters with this fingerprint become a group of their own again."
                aria-label={`Split ${one}`}
                onClick={() => mutate(() => api.splitGroup({ fingerprint: one }))}
              >
                Split
              </Button>
            )}
          </Group>
        ))}
      </Stack>
    </Panel>
  )
}
