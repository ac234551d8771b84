import { useState } from 'react'
import { Button, Menu, Text, Tooltip } from '@mantine/core'
import {
  filterActionNames,
  isLegal,
  permissionOfAction,
  states,
  type GroupDetailView,
} from 'redrive/api'
import { useCan } from '../../app/session.tsx'
import { Icon } from '../../ui/icon.tsx'
import { BulkDrawer } from '../bulk/bulk-drawer.tsx'
import {
  actionMeanings,
  actionTitle,
  type BulkRequest,
  type FilterAction,
} from '../bulk/bulk-request.ts'

/** Actions on all letters of a group. Each opens a plan first. */
export function LettersActions({ group }: { group: GroupDetailView }) {
  const can = useCan()
  const [request, setRequest] = useState<BulkRequest | undefined>()
  const offered = filterActionNames.filter(
    (action) => can(permissionOfAction[action]) && countFor(group, action) > 0,
  )
  const further = offered.filter((action) => action !== 'retry')
  const open = (action: FilterAction): void =>
    setRequest({ action, filter: { group: [group.fingerprint], state: statesFor(action) } })
  if (offered.length === 0) return null
  return (
    <>
      {further.length > 0 && (
        <Menu position="bottom-end" width={320}>
          <Menu.Target>
            <Button variant="default" rightSection={<Icon name="down" size={12} />}>
              All letters
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {further.map((action) => (
              <Menu.Item
                key={action}
                onClick={() => open(action)}
                {...(action === 'remove' ? { color: 'red' } : {})}
              >
                {actionTitle(action, countFor(group, action))}…
                <Text size="xs" c="dimmed">
                  {actionMeanings[action]}
                </Text>
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {offered.includes('retry') && (
        <Tooltip label={`${actionMeanings.retry} You see the plan first.`}>
          <Button onClick={() => open('retry')}>
            {actionTitle('retry', countFor(group, 'retry'))}
          </Button>
        </Tooltip>
      )}
      <BulkDrawer request={request} onClose={() => setRequest(undefined)} />
    </>
  )
}

type State = (typeof states)[number]

/** The states from which an action is possible. */
function statesFor(action: FilterAction): State[] {
  const isPossible = (state: State): boolean =>
    action === 'tag' || action === 'priority' ? isLegal('edit', state) : isLegal(action, state)
  return states.filter((state) => isPossible(state) && state !== 'retrying')
}

function countFor({ states: counts }: GroupDetailView, action: FilterAction): number {
  return statesFor(action).reduce((sum, state) => sum + (counts[state] ?? 0), 0)
}
