import { Stack, Text, Title } from '@mantine/core'
import type { GroupDetailView } from 'redrive/api'
import { formatCount } from '../../format/number.ts'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import classes from './group.module.css'

type Facet = GroupDetailView['queues'][number]

const shown = 8

/** Where the failures of a group happened. */
export function Affected({ group }: { group: GroupDetailView }) {
  const lists: [string, Facet[]][] = [
    ['Queues', group.queues],
    ['Versions', group.versions],
    ['Tenants', group.tenants],
    ['Hosts', group.hosts],
  ]
  const known = lists.filter(([, facets]) => facets.length > 0)
  return (
    <Panel title="What it affects">
      <Stack gap={16}>
        {known.map(([title, facets]) => (
          <FacetList key={title} title={title} facets={facets} />
        ))}
        {known.length === 0 && (
          <Text size="sm" c="dimmed">
            Nothing is known about where these failures happened.
          </Text>
        )}
      </Stack>
    </Panel>
  )
}

function FacetList({ title, facets }: { title: string; facets: readonly Facet[] }) {
  const max = Math.max(1, ...facets.map(({ count }) => count))
  return (
    <div>
      <Title order={3}>{title}</Title>
      {facets.slice(0, shown).map(({ name, count, lastSeen }) => (
        <div key={name} className={classes.facet}>
          <div>
            <div className="line" title={name}>
              <bdi>{name}</bdi>
            </div>
            <div className={classes.bar}>
              <span style={{ width: `${(count / max) * 100}%` }} />
            </div>
          </div>
          <span className={classes.count} title="Failures">
            {formatCount(count)}
          </span>
          <Time at={lastSeen} />
        </div>
      ))}
      {facets.length > shown && (
        <Text size="xs" c="dimmed">
          {formatCount(facets.length - shown)} more
        </Text>
      )}
    </div>
  )
}
