import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { GroupDetailView } from 'redrive/api'
import { isMissing } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { useCan } from '../../app/session.tsx'
import { capitalize, toWords } from '../../format/text.ts'
import { Facts } from '../../ui/facts.tsx'
import { Id } from '../../ui/id.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import classes from './group.module.css'

const maxFrames = 20

/** Why letters are in this group, by the example of the newest one. */
export function Explanation({ group }: { group: GroupDetailView }) {
  const can = useCan()
  const canRead = can('payload:read')
  const explanation = useQuery({ ...queries.groupOfLetter(group.sampleId), enabled: canRead })
  return (
    <Panel title="Why letters are in this group">
      {!canRead ? (
        <Text size="sm" c="dimmed">
          The explanation shows parts of errors. Reading it needs the permission payload:read.
        </Text>
      ) : isMissing(explanation.error) ? (
        <Text size="sm" c="dimmed">
          The newest letter of this group was removed, so there is no example to explain.
        </Text>
      ) : (
        <Loaded query={explanation}>
          {({ fingerprint, computed, parts, frames, masked }) => (
            <Stack gap={12}>
              <Facts
                facts={[
                  ['Fingerprint', <Id key="id" id={fingerprint} whole />],
                  ...parts.map(
                    ({ part, value }) =>
                      [
                        capitalize(toWords(part)),
                        <bdi key={part}>{value.slice(0, 500)}</bdi>,
                      ] as const,
                  ),
                  ['Ignored in the message', masked.length > 0 && masked.join(', ').slice(0, 500)],
                ]}
              />
              {computed !== fingerprint && (
                <Text size="sm" c="dimmed">
                  By the current rules this letter would have the fingerprint {computed}: the rules
                  changed since it was captured, or it comes from another system.
                </Text>
              )}
              {frames.length > 0 && (
                <div>
                  <Text size="sm" c="dimmed">
                    Frames of the stack. Dim ones do not count.
                  </Text>
                  {frames.slice(0, maxFrames).map(({ frame, used }) => (
                    <div key={frame} className={classes.frame} data-used={used}>
                      {frame.slice(0, 500)}
                    </div>
                  ))}
                </div>
              )}
            </Stack>
          )}
        </Loaded>
      )}
    </Panel>
  )
}
