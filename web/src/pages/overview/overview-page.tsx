import { SegmentedControl, SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { queries } from '../../api/queries.ts'
import { useSeesAll } from '../../app/session.tsx'
import { Page } from '../../ui/page.tsx'
import { LatestBulkActions } from './latest-bulk-actions.tsx'
import { RaisedAlerts } from './raised-alerts.tsx'
import { FirstLetter } from './first-letter.tsx'
import { QueueHealth } from './queue-health.tsx'
import { DepthChart, RatesChart } from './series-charts.tsx'
import { Summary } from './summary.tsx'
import { TopGroups } from './top-groups.tsx'
import { defaultRange, ranges, type Range } from './ranges.ts'

const route = getRouteApi('/signed-in/')

/** What is wrong, whether it gets worse, and where to begin. */
export function OverviewPage() {
  const { range = defaultRange } = route.useSearch()
  const navigate = route.useNavigate()
  const seesAll = useSeesAll()
  const { data: queues } = useQuery(queries.queues())
  const isEmpty = queues?.items.length === 0
  return (
    <Page
      title="Overview"
      actions={
        !isEmpty && (
          <SegmentedControl
            size="xs"
            aria-label="Time range of the charts"
            value={range}
            onChange={(value) =>
              void navigate({ search: { range: value as Range }, replace: true })
            }
            data={Object.entries(ranges).map(([value, { label }]) => ({ value, label }))}
          />
        )
      }
    >
      {isEmpty ? (
        <FirstLetter />
      ) : (
        <>
          <RaisedAlerts />
          <Summary />
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing={16}>
            <DepthChart range={range} />
            <RatesChart range={range} />
          </SimpleGrid>
          <TopGroups />
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing={16}>
            <QueueHealth />
            {seesAll && <LatestBulkActions />}
          </SimpleGrid>
        </>
      )}
    </Page>
  )
}
