import { ActionIcon, Button, Menu, Text, useMantineColorScheme } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { api } from '../api/client.ts'
import { Icon } from '../ui/icon.tsx'
import { showProblem } from '../ui/toast.ts'
import { usePreferences } from './preferences.tsx'
import { useCaller } from './session.tsx'

/** Switches all times of all pages between the zone of the reader and UTC. */
export function ZoneSwitch() {
  const { zone, setZone } = usePreferences()
  const next = zone === 'UTC' ? 'local' : 'UTC'
  return (
    <Button
      variant="subtle"
      color="gray"
      px={8}
      visibleFrom="xs"
      title={`Times are shown in ${zone === 'UTC' ? 'UTC' : 'your time zone'}: click for ${next === 'UTC' ? 'UTC' : 'your time zone'}`}
      onClick={() => setZone(next)}
    >
      {zone === 'UTC' ? 'UTC' : 'Local time'}
    </Button>
  )
}

const schemes = [
  ['light', 'Light'],
  ['dark', 'Dark'],
  ['auto', 'Like the system'],
] as const

export function ThemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Theme">
          <Icon name="theme" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(([scheme, label]) => (
          <Menu.Item
            key={scheme}
            onClick={() => setColorScheme(scheme)}
            rightSection={colorScheme === scheme ? <Icon name="check" size={12} /> : undefined}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

/** Who is signed in, what they may do, and the way out. */
export function UserMenu() {
  const caller = useCaller()
  const queryClient = useQueryClient()
  const signOut = async (): Promise<void> => {
    try {
      await api.endSession()
      queryClient.clear()
      location.assign('/sign-in')
    } catch (error) {
      showProblem(error)
    }
  }
  if (!caller) return null
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          px={8}
          leftSection={<Icon name="user" size={14} />}
          maw={160}
          aria-label={`Signed in as ${caller.name}`}
        >
          {caller.name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Signed in as {caller.name}</Menu.Label>
        <Text size="xs" px={12} pb={8} c="dimmed">
          {caller.role ? `Role ${caller.role}.` : `Permissions: ${caller.permissions.join(', ')}.`}
          {caller.queues && ` Queues: ${caller.queues.join(', ')}.`}
          {caller.tenants && ` Tenants: ${caller.tenants.join(', ')}.`}
        </Text>
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
