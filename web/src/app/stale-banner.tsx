import { Button, Group } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { formatDuration } from '../format/time.ts'
import classes from './stale-banner.module.css'
import { useConnection } from './feed.tsx'
import { useNow } from './preferences.tsx'

/** A shorter loss of the connection is not shown. */
const minLossMs = 3000

/** Says that the connection is lost, and how old the data of the page is. */
export function StaleBanner() {
  const connection = useConnection()
  const now = useNow()
  const queryClient = useQueryClient()
  if (connection.state !== 'lost' || now - connection.since < minLossMs) return null
  return (
    <Group className={classes.banner} role="status" justify="space-between" gap={8}>
      <span>
        The connection to the server is lost. This page shows what was true{' '}
        {formatDuration(now - connection.since)} ago, and updates itself when the server is back.
      </span>
      <Button variant="default" onClick={() => void queryClient.refetchQueries({ type: 'active' })}>
        Try now
      </Button>
    </Group>
  )
}
