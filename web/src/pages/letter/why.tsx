import { useState } from 'react'
import { Badge, Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { LetterView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useCan } from '../../app/session.tsx'
import { formatAmount, formatCount } from '../../format/number.ts'
import { describeRule } from '../../format/rule.ts'
import { parseStack, type FrameBlock } from '../../format/stack.ts'
import { toWords } from '../../format/text.ts'
import { formatDuration } from '../../format/time.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import classes from './letter.module.css'

type Failure = LetterView['failure']

/** Why the letter failed. */
export function Why({ letter }: { letter: LetterView }) {
  const { failure, firstFailure, category, severity, recoverability } = letter
  const decision = useDecision(letter)
  const isOther = firstFailure.name !== failure.name || firstFailure.message !== failure.message
  return (
    <Panel title="Why" right={<Time at={failure.at} />}>
      <Stack gap={16}>
        {letter.hidden && (
          <Text size="sm" c="dimmed">
            The message and the stack are hidden. Reading them needs the permission payload:read.
          </Text>
        )}
        <FailureView failure={failure} />
        {letter.corrupt !== undefined && (
          <Text size="sm" c="red">
            The stored row cannot be read: {letter.corrupt}
          </Text>
        )}
        <Facts
          facts={[
            [
              'Classified as',
              <Group key="kind" gap={6}>
                <Badge color="gray">{toWords(category)} failure</Badge>
                <Badge color="gray">{severity} severity</Badge>
                <Badge color="gray">{retryHelps[recoverability]}</Badge>
              </Group>,
            ],
            ['Decided by', decision && <bdi key="decision">{decision}</bdi>],
            ['Kind', failure.detail && toWords(failure.detail.replaceAll('_', ' '))],
            ['What to do', failure.hint],
            ['Code', failure.code && <code key="code">{failure.code}</code>],
            ['HTTP status', failure.status],
            [
              'Asked to wait',
              failure.retryAfterMs !== undefined && formatDuration(failure.retryAfterMs),
            ],
            ['Group', <GroupLink key="group" fingerprint={letter.fingerprint} />],
            [
              'First failure',
              isOther && (
                <bdi key="first" className={classes.pre}>
                  {firstFailure.name}: {firstFailure.message.slice(0, 500)}
                </bdi>
              ),
            ],
          ]}
        />
      </Stack>
    </Panel>
  )
}

/** What the recoverability of a failure means for the reader. */
const retryHelps: Record<LetterView['recoverability'], string> = {
  retryable: 'a retry can help',
  recoverable: 'a retry helps after a fix',
  permanent: 'a retry cannot help',
  unknown: 'unknown whether a retry helps',
}

/** The rule that classified the failure, in words. The rules may have changed since. */
function useDecision({ id, category }: LetterView): string | undefined {
  const can = useCan()
  const { data } = useQuery({ ...queries.groupOfLetter(id), enabled: can('payload:read') })
  if (!data) return undefined
  const rule = describeRule(data.rule)
  return data.category === category
    ? rule
    : `earlier rules; now ${rule} decides that it is a ${toWords(data.category)} failure`
}

const maxMessage = 2000

function FailureView({ failure, depth = 0 }: { failure: Failure; depth?: number }) {
  const { name, message, stack, causes } = failure
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? message : message.slice(0, maxMessage)
  return (
    <Stack gap={8}>
      <div className={classes.message}>
        {depth > 0 && <span className="dim">Caused by </span>}
        <bdi>
          <b>{name}</b>
          {message !== '' && `: ${shown}`}
        </bdi>
        {shown.length < message.length && (
          <Button variant="subtle" size="compact-xs" onClick={() => setWhole(true)}>
            Show all {formatCount(message.length)} characters
          </Button>
        )}
      </div>
      {stack !== undefined && <StackTrace stack={stack} />}
      {causes.length > 0 && (
        <div className={classes.causes}>
          {causes.map((cause, index) => (
            <FailureView key={index} failure={cause} depth={depth + 1} />
          ))}
        </div>
      )}
    </Stack>
  )
}

/** The stack of an error: frames of the application are open, those of libraries folded. */
function StackTrace({ stack }: { stack: string }) {
  const blocks = parseStack(stack)
  if (blocks.length === 0) return null
  return (
    <div className={classes.stack}>
      <div className={classes.stackCopy}>
        <CopyButton text={stack} label="Copy stack" size="compact-xs" />
      </div>
      {blocks.map((block, index) => (
        <Frames key={index} block={block} />
      ))}
    </div>
  )
}

const maxFrames = 50

function Frames({ block: { isLibrary, frames } }: { block: FrameBlock }) {
  const [isOpen, setOpen] = useState(!isLibrary)
  const [max, setMax] = useState(maxFrames)
  if (!isOpen)
    return (
      <Button variant="subtle" color="gray" size="compact-xs" onClick={() => setOpen(true)}>
        {formatAmount(frames.length, 'library frame')}
      </Button>
    )
  return (
    <>
      {frames.slice(0, max).map(({ text }, index) => (
        <div key={index} className={classes.frame} data-library={isLibrary}>
          {text.slice(0, 1000)}
        </div>
      ))}
      {frames.length > max && (
        <Button variant="subtle" size="compact-xs" onClick={() => setMax(max * 10)}>
          {formatAmount(frames.length - max, 'further frame')}
        </Button>
      )}
    </>
  )
}

function GroupLink({ fingerprint }: { fingerprint: string }) {
  const { data: group } = useQuery(queries.group(fingerprint))
  return (
    <Link to="/groups/$fingerprint" params={{ fingerprint }}>
      {group ? formatAmount(group.count, 'letter') + ' with this cause' : 'Letters with this cause'}
    </Link>
  )
}
