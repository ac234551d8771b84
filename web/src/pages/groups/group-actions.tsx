import { useState } from 'react'
import { ActionIcon, Button, Menu, Text, Tooltip } from '@mantine/core'
import type { GroupDetailView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { useCaller, useCan } from '../../app/session.tsx'
import { Icon } from '../../ui/icon.tsx'
import { ReasonDialog } from '../../ui/reason-dialog.tsx'
import { IgnoreDialog } from './ignore-dialog.tsx'
import { MergeDialog } from './merge-dialog.tsx'
import { useGroupAction } from './use-group-action.ts'

type DialogName = 'resolve' | 'ignore' | 'assign' | 'merge'

/** What people can do with a group itself. Actions on its letters are on the page of letters. */
export function GroupButtons({ group }: { group: GroupDetailView }) {
  const can = useCan()
  const { fingerprint, status } = group
  const { mutate, isPending } = useGroupAction(fingerprint)
  const [dialog, setDialog] = useState<DialogName | undefined>()
  if (!can('group:edit')) return null
  const close = (): void => setDialog(undefined)
  const act = (action: () => Promise<GroupDetailView>): void => {
    close()
    mutate(action)
  }
  const isOpen = status === 'open' || status === 'regressed'
  return (
    <>
      {isOpen ? (
        <Tooltip label="Marks the cause as fixed. The group regresses if it is seen again.">
          <Button variant="default" loading={isPending} onClick={() => setDialog('resolve')}>
            Resolve…
          </Button>
        </Tooltip>
      ) : (
        <Tooltip label="The group is open again.">
          <Button
            variant="default"
            loading={isPending}
            onClick={() => act(() => api.reopenGroup({ fingerprint }))}
          >
            Reopen
          </Button>
        </Tooltip>
      )}
      <GroupMenu group={group} onAct={act} onDialog={setDialog} />
      {dialog && (
        <GroupDialog name={dialog} fingerprint={fingerprint} onAct={act} onClose={close} />
      )}
    </>
  )
}

type OnAct = (action: () => Promise<GroupDetailView>) => void

function GroupMenu({
  group: { fingerprint, status, assignee },
  onAct,
  onDialog,
}: {
  group: GroupDetailView
  onAct: OnAct
  onDialog: (name: DialogName) => void
}) {
  const caller = useCaller()
  const isOpen = status === 'open' || status === 'regressed'
  return (
    <Menu position="bottom-end" width={300}>
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label="More actions">
          <Icon name="more" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {isOpen && (
          <Item
            label="Ignore…"
            effect="No alerts about it until a limit is passed."
            onClick={() => onDialog('ignore')}
          />
        )}
        {caller && assignee !== caller.name && (
          <Item
            label="Assign to me"
            effect="Others see that you take care of it."
            onClick={() => onAct(() => api.assignGroup({ fingerprint, assignee: caller.name }))}
          />
        )}
        <Item
          label="Assign…"
          effect="Others see who takes care of it."
          onClick={() => onDialog('assign')}
        />
        {assignee !== undefined && (
          <Item
            label="Remove the assignee"
            effect="Nobody takes care of it."
            onClick={() => onAct(() => api.assignGroup({ fingerprint, assignee: null }))}
          />
        )}
        <Item
          label="Merge…"
          effect="Other groups with the same cause become part of this one."
          onClick={() => onDialog('merge')}
        />
      </Menu.Dropdown>
    </Menu>
  )
}

function GroupDialog({
  name,
  fingerprint,
  onAct,
  onClose,
}: {
  name: DialogName
  fingerprint: string
  onAct: OnAct
  onClose: () => void
}) {
  switch (name) {
    case 'resolve':
      return (
        <ReasonDialog
          title="Resolve this group"
          explanation="The cause counts as fixed. The group regresses if it is seen again, with a version in that or a later version only. Its letters stay as they are: retry them when the fix is deployed."
          action="Resolve"
          label="Version with the fix"
          required={false}
          onClose={onClose}
          onConfirm={(inVersion) =>
            onAct(() =>
              api.resolveGroup({ fingerprint, ...(inVersion === '' ? {} : { inVersion }) }),
            )
          }
        />
      )
    case 'assign':
      return (
        <ReasonDialog
          title="Assign this group"
          explanation="Others see who takes care of it."
          action="Assign"
          label="Name"
          onClose={onClose}
          onConfirm={(name) => onAct(() => api.assignGroup({ fingerprint, assignee: name }))}
        />
      )
    case 'ignore':
      return (
        <IgnoreDialog
          onClose={onClose}
          onIgnore={(limits) => onAct(() => api.ignoreGroup({ fingerprint, ...limits }))}
        />
      )
    case 'merge':
      return (
        <MergeDialog
          fingerprint={fingerprint}
          onClose={onClose}
          onMerge={(others) => onAct(() => api.mergeGroups({ fingerprint, others }))}
        />
      )
  }
}

function Item({ label, effect, onClick }: { label: string; effect: string; onClick: () => void }) {
  return (
    <Menu.Item onClick={onClick}>
      {label}
      <Text size="xs" c="dimmed">
        {effect}
      </Text>
    </Menu.Item>
  )
}
