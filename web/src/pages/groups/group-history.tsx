import { Text } from '@mantine/core'
import type { GroupDetailView } from 'redrive/api'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import classes from './group.module.css'

type Change = GroupDetailView['history'][number]

const labels: Record<Change['change'], string> = {
  resolve: 'Resolved',
  ignore: 'Ignored',
  reopen: 'Reopened',
  regress: 'Regressed: seen again after it was resolved',
  limit: 'Open again: a limit of the ignoring was passed',
  assign: 'Assigned',
  note: 'Note added',
  merge: 'Merged',
  split: 'Split',
}

/** What people and failures did to the status of a group, the newest first. */
export function GroupHistory({ group: { history } }: { group: GroupDetailView }) {
  return (
    <Panel title="History">
      {history.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nobody has changed this group.
        </Text>
      ) : (
        <ol className={classes.list}>
          {history.toReversed().map(({ at, by, change, note }, index) => (
            <li key={`${at} ${index}`} className={classes.change}>
              <span>
                <b>{labels[change]}</b> <span className="dim">by</span>{' '}
                <bdi>{by.slice(0, 100)}</bdi>
                {note !== undefined && change !== 'note' && (
                  <>
                    : <bdi>{note.slice(0, 200)}</bdi>
                  </>
                )}
              </span>
              <Time at={at} />
            </li>
          ))}
        </ol>
      )}
    </Panel>
  )
}
