import { HoverCard, Stack, Text, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { queries } from '../api/queries.ts'
import { StateIcon } from '../ui/state.tsx'
import classes from './layout.module.css'
import { useConnection } from './feed.tsx'
import { useSeesAll } from './session.tsx'

/** Whether the store and the server are well. */
export function StoreHealth() {
  const seesAll = useSeesAll()
  const connection = useConnection()
  const { data: health } = useQuery({ ...queries.health(), enabled: seesAll })
  const isLost = connection.state === 'lost'
  const isWell = !isLost && (health?.ok ?? true)
  const label = isLost ? 'not connected' : isWell ? 'healthy' : 'problems'
  const problems = isLost ? ['The server does not answer.'] : (health?.problems ?? [])
  return (
    <HoverCard width={320} shadow="md" openDelay={100}>
      <HoverCard.Target>
        <UnstyledButton className={classes.entry} aria-label={`Server: ${label}`}>
          <StateIcon state={isWell ? 'resolved' : 'exhausted'} />
          <Text size="sm" visibleFrom="md">
            {label}
          </Text>
        </UnstyledButton>
      </HoverCard.Target>
      <HoverCard.Dropdown>
        <Stack gap={4}>
          <Text fw={600}>Server and store: {label}</Text>
          {problems.length === 0 && <Text size="sm">The server reports no problems.</Text>}
          {problems.map((problem) => (
            <Text key={problem} size="sm">
              {problem}
            </Text>
          ))}
        </Stack>
      </HoverCard.Dropdown>
    </HoverCard>
  )
}
