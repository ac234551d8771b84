import { Badge, Button, Code, Group, Text, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { StateIcon } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { AdminOnly } from './admin-only.tsx'
import { SettingsTabs } from './settings-tabs.tsx'

type Entry = OutputOf<'listAudit'>['items'][number]

const route = getRouteApi('/signed-in/settings/audit')
const typingMs = 300

/** Who did what, in a chain of hashes that shows every change of it. */
export function AuditPage() {
  return (
    <Page title="Settings" label="Audit log">
      <SettingsTabs />
      <AdminOnly>
        <ChainStatus />
        <Entries />
      </AdminOnly>
    </Page>
  )
}

/** Whether the log is complete and unchanged. */
function ChainStatus() {
  const report = useQuery(queries.auditReport())
  return (
    <Panel
      title="Chain of hashes"
      right={
        <Button variant="default" loading={report.isFetching} onClick={() => void report.refetch()}>
          Check the whole log
        </Button>
      }
    >
      {report.error && <Problem error={report.error} />}
      {!report.data && !report.error && (
        <Text size="sm" c="dimmed">
          Every entry contains the hash of the entry before it. A check reads the whole log and
          finds entries that were changed or removed.
        </Text>
      )}
      {report.data && <Report report={report.data} />}
    </Panel>
  )
}

function Report({ report }: { report: OutputOf<'verifyAudit'> }) {
  const { ok, entries, head, unfinished, firstBad, why } = report
  return (
    <Group gap={8} align="flex-start" wrap="nowrap" role="status">
      <StateIcon state={ok ? 'resolved' : 'exhausted'} size={16} />
      <div>
        <Text size="sm" fw={600}>
          {ok
            ? `${formatAmount(entries, 'entry', 'entries')}: none was changed or removed.`
            : `The log was changed: entry ${formatCount(firstBad ?? 0)} is wrong or missing. ${why ?? ''}`}
        </Text>
        <Text size="sm" c="dimmed">
          Last entry {formatCount(head.seq)}, hash <Code>{head.hash.slice(0, 16)}</Code>.
          {unfinished.length > 0 &&
            ` ${formatAmount(unfinished.length, 'action')} without an outcome: the process stopped in between.`}
        </Text>
      </div>
    </Group>
  )
}

function Entries() {
  const { actor, what } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (part: { actor?: string; what?: string }): void =>
    void navigate({
      search: (before) => {
        const entries = Object.entries({ ...before, ...part })
        return Object.fromEntries(entries.filter(([, value]) => value !== ''))
      },
      replace: true,
    })
  const changeActor = useDebouncedCallback((text: string) => change({ actor: text }), typingMs)
  const changeWhat = useDebouncedCallback((text: string) => change({ what: text }), typingMs)
  const entries = useInfiniteQuery(
    queries.audit({ ...(actor ? { actor } : {}), ...(what ? { what } : {}) }),
  )
  return (
    <Panel
      title="Entries"
      padded={false}
      right={
        <Group gap={8}>
          <TextInput
            size="xs"
            aria-label="Actor"
            placeholder="Actor"
            defaultValue={actor ?? ''}
            onChange={({ currentTarget }) => changeActor(currentTarget.value.trim())}
          />
          <TextInput
            size="xs"
            aria-label="Id of what was changed"
            placeholder="Letter, group, queue …"
            defaultValue={what ?? ''}
            onChange={({ currentTarget }) => changeWhat(currentTarget.value.trim())}
          />
        </Group>
      }
    >
      <Loaded query={entries}>
        {({ pages }) => {
          const rows = pages.flatMap(({ items }) => items)
          if (rows.length === 0)
            return (
              <Empty title={actor || what ? 'No entry matches' : 'Nothing was done yet'}>
                The log has an entry before and after each action of a person.
              </Empty>
            )
          return (
            <>
              <DataTable
                label="Entries of the audit log"
                columns={columns}
                rows={rows}
                keyOf={({ seq }) => String(seq)}
              />
              {entries.hasNextPage && (
                <Group p={16} justify="center">
                  <Button
                    variant="default"
                    loading={entries.isFetchingNextPage}
                    onClick={() => void entries.fetchNextPage()}
                  >
                    Show older entries
                  </Button>
                </Group>
              )}
            </>
          )
        }}
      </Loaded>
    </Panel>
  )
}

const colors = {
  started: 'gray',
  done: 'green',
  failed: 'red',
  denied: 'yellow',
} as const satisfies Record<Entry['outcome'], string>

const columns: Column<Entry>[] = [
  { title: '#', width: 60, align: 'right', cell: ({ seq }) => seq },
  { title: 'When', width: 110, cell: ({ at }) => <Time at={at} /> },
  { title: 'Actor', cell: ({ actor, via }) => <bdi title={`by ${via}`}>{actor}</bdi> },
  { title: 'Action', cell: ({ action }) => action },
  {
    title: 'Of',
    cell: ({ what }) => (
      <>
        {what.kind} <Code>{what.id.slice(0, 60)}</Code>
      </>
    ),
  },
  { title: 'Outcome', cell: ({ outcome }) => <Badge color={colors[outcome]}>{outcome}</Badge> },
  {
    title: 'Reason',
    cell: ({ reason, code, endpoint }) => {
      const text = reason ?? code ?? endpoint
      return text && <bdi>{text}</bdi>
    },
  },
]
