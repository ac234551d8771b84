import { Button, Menu, Text, Tooltip } from '@mantine/core'
import { filterActionNames, permissionOfAction } from 'redrive/api'
import { useCan } from '../../app/session.tsx'
import { formatCount } from '../../format/number.ts'
import { Icon } from '../../ui/icon.tsx'
import { actionMeanings, actionVerb, type FilterAction } from '../bulk/bulk-request.ts'
import { maxSelected, type Selection } from './use-selection.ts'

const primary: readonly FilterAction[] = ['retry', 'replay', 'park']
const further = filterActionNames.filter((action) => !primary.includes(action))

/** What can be done with the selected letters. */
export function SelectionBar({
  selection,
  total,
  canSelectAll,
  onAct,
}: {
  selection: Selection
  total: number | undefined
  /** False: the server cannot select by words. */
  canSelectAll: boolean
  onAct: (action: FilterAction) => void
}) {
  const can = useCan()
  const { ids, isAll } = selection
  const isAllowed = (action: FilterAction): boolean => can(permissionOfAction[action])
  const all = total === undefined ? 'all matching letters' : `all ${formatCount(total)} matching`
  return (
    <>
      <Text size="sm" fw={600} role="status">
        {isAll ? `Selected: ${all}` : `${formatCount(ids.size)} selected`}
        {!isAll && ids.size === maxSelected && ' (the limit)'}
      </Text>
      {primary.filter(isAllowed).map((action) => (
        <Tooltip key={action} label={actionMeanings[action]}>
          <Button variant={action === 'retry' ? 'filled' : 'default'} onClick={() => onAct(action)}>
            {actionVerb(action)}
          </Button>
        </Tooltip>
      ))}
      <Menu width={320}>
        <Menu.Target>
          <Button variant="default" rightSection={<Icon name="down" size={12} />}>
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {further.filter(isAllowed).map((action) => (
            <Menu.Item
              key={action}
              {...(action === 'remove' ? { color: 'red' } : {})}
              onClick={() => onAct(action)}
            >
              {menuLabel(action)}
              <Text size="xs" c="dimmed">
                {actionMeanings[action]}
              </Text>
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {canSelectAll && !isAll && (
        <Button variant="subtle" onClick={selection.selectAll}>
          Select {all}
        </Button>
      )}
      <Button variant="subtle" color="gray" onClick={selection.clear}>
        Clear selection
      </Button>
    </>
  )
}

function menuLabel(action: FilterAction): string {
  return action === 'priority' ? 'Change the priority' : actionVerb(action)
}
