import { Fragment } from 'react'
import { Text } from '@mantine/core'
import type { LetterView } from 'redrive/api'
import { formatAmount } from '../../format/number.ts'
import { toWords } from '../../format/text.ts'
import { formatDuration } from '../../format/time.ts'
import { Panel } from '../../ui/page.tsx'
import { StateIcon } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import classes from './letter.module.css'
import { gapHeight, timelineOf, type TimelineEvent } from './timeline-events.ts'

/** What happened to the letter, the newest first, with the time between as distance. */
export function Timeline({ letter }: { letter: LetterView }) {
  const events = timelineOf(letter)
  return (
    <Panel title="Timeline">
      <ol className={classes.timeline}>
        {events.map((event, index) => (
          <Fragment key={`${event.at} ${index}`}>
            <Event event={event} />
            {event.gapMs >= 1000 && (
              <li className={classes.gap} style={{ height: gapHeight(event.gapMs) }}>
                <span>waited {formatDuration(event.gapMs)}</span>
              </li>
            )}
            {event.omitted > 0 && (
              <li className={classes.gap}>
                <span>{formatAmount(event.omitted, 'event')} left out</span>
              </li>
            )}
          </Fragment>
        ))}
      </ol>
    </Panel>
  )
}

function Event({ event }: { event: TimelineEvent }) {
  const { at, label, actor, failure, note, state } = event
  return (
    <li className={classes.event}>
      {state === null ? <span /> : <StateIcon state={state} />}
      <div className={classes.note}>
        <b>{label}</b> <span className="dim">by</span> <bdi>{actor.slice(0, 200)}</bdi>
        {failure && (
          <Text size="sm" component="div" c="dimmed">
            <bdi>
              {failure.name}
              {failure.message !== '' && `: ${failure.message}`}
            </bdi>{' '}
            ({toWords(failure.category)})
          </Text>
        )}
        {note !== undefined && (
          <Text size="sm" component="div">
            <bdi>{note.slice(0, 4000)}</bdi>
          </Text>
        )}
      </div>
      <Time at={at} />
    </li>
  )
}
