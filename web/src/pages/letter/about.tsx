import { Badge, Group, Stack, Table, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { LetterView } from 'redrive/api'
import { previewJson } from '../../format/json-search.ts'
import { formatAmount } from '../../format/number.ts'
import { describeBackoff } from '../../format/policy.ts'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Panel } from '../../ui/page.tsx'
import { Timestamp } from '../../ui/time.tsx'
import classes from './letter.module.css'
import { nameSource } from './source.ts'

/** Headers, metadata, and everything else that identifies the work. */
export function About({ letter }: { letter: LetterView }) {
  const { headers = {}, metadata } = letter
  return (
    <>
      <Panel title="Details">
        <Facts facts={factsOf(letter)} />
      </Panel>
      <Entries title="Headers" entries={Object.entries(headers)} />
      <Entries
        title="Metadata"
        entries={Object.entries(metadata).map(([key, value]) => [
          key,
          typeof value === 'string'
            ? value
            : isBranch(value)
              ? JSON.stringify(value)
              : previewJson(value),
        ])}
      />
    </>
  )
}

function isBranch(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

type Fact = readonly [string, React.ReactNode]

function factsOf(letter: LetterView): Fact[] {
  const { app, task, github, source } = letter
  const text = (value: string | undefined): React.ReactNode =>
    value === undefined ? undefined : <bdi>{value.slice(0, 500)}</bdi>
  return [
    ['Id', <Id key="id" id={letter.id} whole />],
    ['Queue', <QueueLink key="queue" queue={letter.queue} />],
    ['Source', text(nameSource(source))],
    ['Message id', source.kind === 'mailbox' && <Id key="message" id={source.messageId} whole />],
    ['Priority', letter.priority],
    ['Tags', letter.tags.length > 0 && <Tags key="tags" tags={letter.tags} />],
    ['Tenant', text(letter.tenant)],
    ['Lane', text(letter.lane)],
    ['Dedupe key', text(letter.dedupeKey)],
    [
      'Occurrences',
      letter.occurrences > 1 && formatAmount(letter.occurrences, 'time') + ' while it was open',
    ],
    ['Depends on', letter.dependsOn && formatAmount(letter.dependsOn.length, 'letter')],
    ['Application', app && text([app.name, app.version].filter(Boolean).join(' ') || undefined)],
    ['Host', app && text(`${app.host}, process ${app.pid}`)],
    ['Trace', letter.traceparent && <Id key="trace" id={letter.traceparent} whole />],
    ['Task', task && text(`${task.id}: ${task.description}`)],
    ['GitHub', github && text(`${github.owner}/${github.repo}`)],
    ['Failed', <Timestamp key="failed" at={letter.failedAt} />],
    ['Captured', <Timestamp key="captured" at={letter.deadLetteredAt} />],
    ['Expires', letter.expiresAt && <Timestamp key="expires" at={letter.expiresAt} />],
    [
      'Runs',
      `${letter.attempts} before capture, ${letter.retries} of ${letter.maxRetries} retries`,
    ],
    ['Backoff', describeBackoff(letter.policy)],
    ['Replays', letter.replays > 0 && letter.replays],
  ]
}

function QueueLink({ queue }: { queue: string }) {
  return (
    <Link to="/queues/$queue" params={{ queue }}>
      <bdi>{queue.slice(0, 200)}</bdi>
    </Link>
  )
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <Group gap={4}>
      {tags.slice(0, 50).map((tag) => (
        <Badge key={tag} color="gray" maw="100%">
          <bdi>{tag.slice(0, 100)}</bdi>
        </Badge>
      ))}
    </Group>
  )
}

const maxEntries = 100

function Entries({ title, entries }: { title: string; entries: [string, string][] }) {
  if (entries.length === 0) return null
  return (
    <Panel title={title} padded={false}>
      <Stack gap={0}>
        <Table className={classes.entries} aria-label={title}>
          <Table.Tbody>
            {entries.slice(0, maxEntries).map(([key, value]) => (
              <Table.Tr key={key}>
                <Table.Td className={classes.entryKey}>
                  <bdi>{key.slice(0, 200)}</bdi>
                </Table.Td>
                <Table.Td>
                  <bdi>{value.slice(0, 2000)}</bdi>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        {entries.length > maxEntries && (
          <Text size="sm" c="dimmed" p={16}>
            {formatAmount(entries.length - maxEntries, 'further entry', 'further entries')} not
            shown
          </Text>
        )}
      </Stack>
    </Panel>
  )
}
