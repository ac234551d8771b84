import { Group, SegmentedControl, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import type { GroupDetailView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { shortenId, toWords } from '../../format/text.ts'
import { DataTable } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Column, Columns, Page, Panel } from '../../ui/page.tsx'
import { StateCounts } from '../../ui/state-counts.tsx'
import { Time, Timestamp } from '../../ui/time.tsx'
import { TimeChart } from '../../ui/time-chart.tsx'
import { letterColumns } from '../letter/related.tsx'
import { Affected } from './affected.tsx'
import { Explanation } from './explanation.tsx'
import { GroupButtons } from './group-actions.tsx'
import { GroupHistory } from './group-history.tsx'
import { GroupNotes } from './group-notes.tsx'
import { GroupStatus } from './group-status.tsx'
import { formatGrowth } from './groups-page.tsx'
import { LettersActions } from './letters-actions.tsx'
import { Merged } from './merged.tsx'

/** One cause: is it getting worse, what does it affect, and what can be done. */
export function GroupPage() {
  const { fingerprint } = useParams({ from: '/signed-in/groups/$fingerprint' })
  const group = useQuery(queries.group(fingerprint))
  return (
    <Loaded
      query={group}
      skeleton={
        <Page title={`Group ${shortenId(fingerprint)}`}>
          <Skeleton height={240} />
        </Page>
      }
    >
      {(data) => <GroupBody group={data} />}
    </Loaded>
  )
}

function GroupBody({ group }: { group: GroupDetailView }) {
  const { fingerprint, title, queue, category, status, assignee } = group
  return (
    <Page
      label={`Group ${title.slice(0, 60)}`}
      title={<bdi>{group.hidden ? `Group ${shortenId(fingerprint)}` : title}</bdi>}
      description={
        <Group gap={12}>
          <GroupStatus status={status} />
          <StatusDetail group={group} />
          <span>
            {toWords(category)} failure in <bdi>{queue.slice(0, 100)}</bdi>
          </span>
          <span>
            {assignee === undefined ? (
              'not assigned'
            ) : (
              <>
                assigned to <bdi>{assignee.slice(0, 100)}</bdi>
              </>
            )}
          </span>
        </Group>
      }
      actions={
        <>
          <GroupButtons group={group} />
          <LettersActions group={group} />
        </>
      }
    >
      <Trend group={group} />
      <Columns>
        <Affected group={group} />
        <Column>
          <Numbers group={group} />
          <GroupNotes group={group} />
        </Column>
      </Columns>
      <Letters fingerprint={fingerprint} />
      <Columns>
        <Explanation group={group} />
        <Column>
          <Merged group={group} />
          <GroupHistory group={group} />
        </Column>
      </Columns>
    </Page>
  )
}

function StatusDetail({ group: { status, resolved, ignored } }: { group: GroupDetailView }) {
  if (status === 'ignored' && ignored)
    return (
      <span>
        by <bdi>{ignored.by}</bdi>
        {ignored.until !== undefined && (
          <>
            {' '}
            until <Timestamp at={ignored.until} />
          </>
        )}
        {ignored.count !== undefined &&
          `, until ${formatAmount(ignored.count, 'further failure')} (${formatCount(ignored.seen)} so far)`}
        {ignored.rate !== undefined &&
          `, until ${formatAmount(ignored.rate, 'failure')} in an hour`}
      </span>
    )
  if (resolved && (status === 'resolved' || status === 'regressed'))
    return (
      <span>
        {status === 'regressed' && 'was resolved '}
        {resolved.inVersion !== undefined && `in ${resolved.inVersion.slice(0, 60)} `}by{' '}
        <bdi>{resolved.by}</bdi> <Time at={resolved.at} />
      </span>
    )
  return null
}

function Trend({ group: { trend } }: { group: GroupDetailView }) {
  const { range = 'hours' } = useSearch({ from: '/signed-in/groups/$fingerprint' })
  const navigate = useNavigate()
  const points = trend[range]
  const sum = points.reduce((total, one) => total + one.count, 0)
  const span = range === 'hours' ? 'by hour, last 48 hours' : 'by day, last 30 days'
  return (
    <Panel
      title={`Failures ${span}`}
      right={
        <SegmentedControl
          size="xs"
          aria-label="Range of the chart"
          data={[
            { value: 'hours', label: '48 hours' },
            { value: 'days', label: '30 days' },
          ]}
          value={range}
          onChange={(value) =>
            void navigate({
              to: '.',
              search: { range: value },
              replace: true,
              resetScroll: false,
            })
          }
        />
      }
    >
      <TimeChart
        label={`${formatAmount(sum, 'failure')} ${span}`}
        kind="bars"
        times={points.map(({ at }) => Date.parse(at))}
        series={[{ label: 'Failures', color: 'accent', values: points.map((one) => one.count) }]}
      />
    </Panel>
  )
}

function Numbers({ group }: { group: GroupDetailView }) {
  return (
    <Panel title="Numbers">
      <Facts
        facts={[
          ['Letters', formatCount(group.count)],
          ['By state', <StateCounts key="states" states={group.states} />],
          ['Change, 24 h', `${formatGrowth(group.growth)} failures compared with the day before`],
          ['First seen', <Timestamp key="first" at={group.firstSeen} />],
          ['Last seen', <Timestamp key="last" at={group.lastSeen} />],
          [
            'Newest letter',
            <Link key="sample" to="/letters/$id" params={{ id: group.sampleId }} className="mono">
              {shortenId(group.sampleId)}
            </Link>,
          ],
        ]}
      />
    </Panel>
  )
}

const shownLetters = 10

function Letters({ fingerprint }: { fingerprint: string }) {
  const letters = useQuery(queries.lettersOfGroup(fingerprint, shownLetters))
  return (
    <Panel
      title="Newest letters"
      padded={false}
      right={
        <Link to="/letters" search={{ group: [fingerprint] }}>
          All letters
        </Link>
      }
    >
      <Loaded query={letters}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No letters">All letters of this group are archived or removed.</Empty>
          ) : (
            <DataTable
              label="Newest letters of the group"
              columns={letterColumns}
              rows={items}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
