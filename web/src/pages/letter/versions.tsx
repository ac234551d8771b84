import { useState } from 'react'
import { Group, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { LetterView, OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatBytes } from '../../format/number.ts'
import { CodeDiff } from '../../ui/code.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { payloadText } from './payload-text.ts'

type Version = OutputOf<'getPayloads'>[number]

/** The stored versions of the payload, and what changed between two of them. */
export function Versions({ letter, isRevealed }: { letter: LetterView; isRevealed: boolean }) {
  const payloads = useQuery(queries.payloads(letter.id, letter.payload.version, isRevealed))
  return (
    <Panel title="Versions of the payload">
      <Loaded query={payloads}>{(versions) => <Compare versions={versions} />}</Loaded>
    </Panel>
  )
}

const maxCompared = 500_000

function Compare({ versions }: { versions: readonly Version[] }) {
  const [from, setFrom] = useState<number | undefined>()
  const [to, setTo] = useState<number | undefined>()
  const first = versions.find(({ version }) => version === from) ?? versions.at(-2) ?? versions[0]
  const second = versions.find(({ version }) => version === to) ?? versions.at(-1)
  if (!first || !second) return null
  const before = payloadText(first)
  const after = payloadText(second)
  const data = versions.map((one) => ({ value: String(one.version), label: labelOf(one) }))
  return (
    <Stack gap={12}>
      <Group gap={8}>
        <Select
          label="Before"
          data={data}
          value={String(first.version)}
          allowDeselect={false}
          onChange={(value) => setFrom(Number(value))}
        />
        <Select
          label="After"
          data={data}
          value={String(second.version)}
          allowDeselect={false}
          onChange={(value) => setTo(Number(value))}
        />
      </Group>
      {before === undefined || after === undefined ? (
        <Text size="sm">
          One of these versions is not text: {formatBytes(first.size)} before,{' '}
          {formatBytes(second.size)} after.
        </Text>
      ) : before.length + after.length > maxCompared ? (
        <Text size="sm">
          These versions are too long to compare here: <code>redrive diff</code> in a terminal shows
          what changed.
        </Text>
      ) : before === after ? (
        <Text size="sm">These versions are the same.</Text>
      ) : (
        <CodeDiff
          label="Changes between the versions"
          before={before}
          after={after}
          language={first.json === undefined ? 'text' : 'json'}
        />
      )}
    </Stack>
  )
}

function labelOf({ version, by }: Version): string {
  if (version === 1) return 'Version 1, as captured'
  return by === undefined ? `Version ${version}` : `Version ${version} by ${by.slice(0, 60)}`
}
