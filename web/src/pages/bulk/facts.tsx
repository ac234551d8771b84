import { Code } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { formatAmount, formatCount, formatShare } from '../../format/number.ts'
import { Timestamp } from '../../ui/time.tsx'

/** A name and its value, in a list of them. */
export function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

const maxPatchChars = 4000

/** What the action does besides what its name says. */
export function InputFacts({ action: { input } }: { action: BulkActionView }) {
  return (
    <>
      {input.at !== undefined && (
        <Fact name="Due">
          <Timestamp at={input.at} />
        </Fact>
      )}
      {input.to !== undefined && (
        <Fact name="Mailbox">
          <bdi>{input.to}</bdi>
        </Fact>
      )}
      {input.priority !== undefined && <Fact name="New priority">{input.priority}</Fact>}
      {input.addTags && <Fact name="Add tags">{input.addTags.join(', ')}</Fact>}
      {input.removeTags && <Fact name="Remove tags">{input.removeTags.join(', ')}</Fact>}
      {input.transform !== undefined && <Fact name="Transform">{input.transform}</Fact>}
      {input.patch && (
        <Fact name="Patch">
          <Code block>{JSON.stringify(input.patch, null, 2).slice(0, maxPatchChars)}</Code>
        </Fact>
      )}
      {input.undoes !== undefined && (
        <Fact name="Undoes">
          <Link to="/bulk-actions/$id" params={{ id: input.undoes }}>
            the edit
          </Link>
        </Fact>
      )}
      {input.includeSuperseded && <Fact name="Superseded letters">included</Fact>}
    </>
  )
}

/** How fast, when and how carefully the action runs. */
export function LimitFacts({ limits, count }: Pick<BulkActionView, 'limits' | 'count'>) {
  const { rate, concurrency, startAt, window, canary } = limits
  return (
    <>
      <Fact name="Rate">{rate === undefined ? 'no limit' : `${rate} letters/s`}</Fact>
      <Fact name="At the same time">
        {concurrency < count ? formatAmount(concurrency, 'letter') : 'no limit'}
      </Fact>
      {startAt !== undefined && (
        <Fact name="Not before">
          <Timestamp at={startAt} />
        </Fact>
      )}
      {window && (
        <Fact name="Only between">
          {window.from} and {window.to} ({window.timeZone ?? 'UTC'})
        </Fact>
      )}
      {canary && (
        <Fact name="First">
          {formatAmount(canary.first, 'letter')}, each step {formatCount(canary.factor)} times as
          many; stops when more than {formatShare(canary.maxFailureShare)} fail
        </Fact>
      )}
    </>
  )
}
