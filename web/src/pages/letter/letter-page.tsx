import { useMemo, useState } from 'react'
import { Group, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import type { LetterView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { useCan } from '../../app/session.tsx'
import { useShortcuts } from '../../app/shortcuts.tsx'
import { describeLetter } from '../../format/letter-sentence.ts'
import { shortenId, toWords } from '../../format/text.ts'
import { Id } from '../../ui/id.tsx'
import { Loaded, SkeletonRows } from '../../ui/loading.tsx'
import { Column, Columns, Page, Panel } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { About } from './about.tsx'
import { LetterButtons, Neighbours } from './letter-head.tsx'
import { Notes } from './notes.tsx'
import { PayloadPanel } from './payload-panel.tsx'
import { Lineage, SameGroup } from './related.tsx'
import { Timeline } from './timeline.tsx'
import { useNeighbours } from './use-neighbours.ts'
import { Versions } from './versions.tsx'
import { Why } from './why.tsx'

/** One letter: what failed, why, what happens next, and what can be done. */
export function LetterPage() {
  const { id } = useParams({ from: '/signed-in/letters/$id' })
  // What was revealed of one letter says nothing about the next one.
  return <LetterLoader key={id} id={id} />
}

function LetterLoader({ id }: { id: string }) {
  const [isRevealed, setRevealed] = useState(false)
  const letter = useQuery(queries.letter(id, isRevealed))
  const { previous, next } = useNeighbours(id)
  useShortcuts(
    useMemo(
      () => [
        ...(next ? [{ keys: 'j', label: 'Next letter of the list', run: next }] : []),
        ...(previous ? [{ keys: 'k', label: 'Previous letter of the list', run: previous }] : []),
      ],
      [next, previous],
    ),
  )
  return (
    <Loaded query={letter} skeleton={<LetterSkeleton id={id} />}>
      {(data) => (
        <LetterBody
          letter={data}
          isRevealed={isRevealed}
          onReveal={() => setRevealed(true)}
          neighbours={
            <Neighbours
              {...(previous ? { onPrevious: previous } : {})}
              {...(next ? { onNext: next } : {})}
            />
          }
        />
      )}
    </Loaded>
  )
}

function LetterSkeleton({ id }: { id: string }) {
  return (
    <Page title={`Letter ${shortenId(id)}`} description={<Skeleton height={20} width={240} />}>
      <Columns>
        <Panel title="Why">
          <SkeletonRows />
        </Panel>
        <Panel title="Payload">
          <SkeletonRows />
        </Panel>
      </Columns>
    </Page>
  )
}

function LetterBody({
  letter,
  isRevealed,
  onReveal,
  neighbours,
}: {
  letter: LetterView
  isRevealed: boolean
  onReveal: () => void
  neighbours: React.ReactNode
}) {
  const can = useCan()
  const now = useNow()
  const navigate = useNavigate()
  const { view } = useSearch({ from: '/signed-in/letters/$id' })
  const { id, state, reason, queue, payload } = letter
  return (
    <Page
      label={`${queue.slice(0, 60)} ${shortenId(id)}`}
      title={<bdi>{describeLetter(letter, now)}</bdi>}
      description={
        <Group gap={12}>
          <StateBadge state={state} />
          {reason !== undefined && <span>{toWords(reason)}</span>}
          <Id id={id} />
          <span>
            captured <Time at={letter.deadLetteredAt} />
          </span>
        </Group>
      }
      actions={
        <>
          {neighbours}
          <LetterButtons letter={letter} isRevealed={isRevealed} />
        </>
      }
    >
      <Columns>
        <Column>
          <Why letter={letter} />
          <Timeline letter={letter} />
          <Notes letter={letter} />
        </Column>
        <Column>
          <PayloadPanel
            letter={letter}
            view={view}
            onView={(name) =>
              void navigate({ to: '.', search: { view: name }, replace: true, resetScroll: false })
            }
            isRevealed={isRevealed}
            onReveal={onReveal}
          />
          <About letter={letter} />
        </Column>
      </Columns>
      {payload.version > 1 && can('payload:read') && (
        <Versions letter={letter} isRevealed={isRevealed} />
      )}
      <Lineage id={id} />
      <SameGroup letter={letter} />
    </Page>
  )
}
