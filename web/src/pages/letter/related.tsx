import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { LetterView, OutputOf, SummaryView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount } from '../../format/number.ts'
import { firstLine } from '../../format/text.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { shortenId } from '../../format/text.ts'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'

type LineageLetter = OutputOf<'getLineage'>[number]

/** The letters of one message. Shown if it was replayed. */
export function Lineage({ id }: { id: string }) {
  const lineage = useQuery(queries.lineage(id))
  if (lineage.data && lineage.data.length < 2) return null
  return (
    <Panel title="Replays of the same message" padded={false}>
      <Loaded query={lineage}>
        {(letters) => (
          <DataTable
            label="Replays of the same message"
            columns={lineageColumns(id)}
            rows={letters}
            keyOf={(letter) => letter.id}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function lineageColumns(current: string): Column<LineageLetter>[] {
  return [
    {
      title: 'Letter',
      width: 140,
      cell: ({ id }) => (id === current ? 'This letter' : <LetterLink id={id} />),
    },
    { title: 'State', width: 110, cell: ({ state }) => <StateBadge state={state} /> },
    { title: 'Failure', cell: ({ failure }) => <bdi>{firstLine(failure).slice(0, 200)}</bdi> },
    { title: 'Captured', width: 130, cell: ({ deadLetteredAt }) => <Time at={deadLetteredAt} /> },
  ]
}

const shown = 6

/** Further letters with the same cause. */
export function SameGroup({ letter }: { letter: Pick<LetterView, 'id' | 'fingerprint'> }) {
  const { fingerprint } = letter
  const others = useQuery(queries.lettersOfGroup(fingerprint, shown))
  return (
    <Panel
      title="Letters with the same cause"
      padded={false}
      right={
        <Link to="/letters" search={{ group: [fingerprint] }}>
          All of them
        </Link>
      }
    >
      <Loaded query={others}>
        {({ items }) => {
          const rows = items.filter(({ id }) => id !== letter.id).slice(0, shown - 1)
          return rows.length === 0 ? (
            <Empty title="No other letter has this cause" />
          ) : (
            <DataTable
              label="Letters with the same cause"
              columns={letterColumns}
              rows={rows}
              keyOf={({ id }) => id}
            />
          )
        }}
      </Loaded>
    </Panel>
  )
}

/** The columns of a short list of letters. */
export const letterColumns: Column<SummaryView>[] = [
  { title: 'Letter', width: 120, cell: ({ id }) => <LetterLink id={id} /> },
  { title: 'State', width: 110, cell: ({ state }) => <StateBadge state={state} /> },
  {
    title: 'Failure',
    cell: ({ failure: { name, message } }) => (
      <bdi>{firstLine(message === '' ? name : message).slice(0, 160)}</bdi>
    ),
  },
  {
    title: 'Runs',
    align: 'right',
    width: 90,
    cell: ({ attempts, retries }) => formatAmount(attempts + retries, 'run'),
  },
  { title: 'Captured', width: 130, cell: ({ deadLetteredAt }) => <Time at={deadLetteredAt} /> },
]

function LetterLink({ id }: { id: string }) {
  return (
    <Link to="/letters/$id" params={{ id }} className="mono" title={id}>
      {shortenId(id)}
    </Link>
  )
}
