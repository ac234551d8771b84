import { useState } from 'react'
import { Alert, Button, Group, Modal, NumberInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { OutputOf } from 'redrive/api'
import { api } from '../../api/client.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { Facts } from '../../ui/facts.tsx'
import { problemText } from '../../ui/problem.tsx'
import type { PipelineNode } from './pipeline-page.tsx'

type Report = OutputOf<'replayNode'>

/** Counts the dead records of a node that match, and then returns them to their source. */
export function ReplayDialog({ node, onClose }: { node: PipelineNode; onClose: () => void }) {
  const queryClient = useQueryClient()
  const [message, setMessage] = useState('')
  const [rate, setRate] = useState<string | number>('')
  const input = {
    nodeId: node.node,
    ...(message.trim() === '' ? {} : { filter: { message: message.trim() } }),
    ...(Number(rate) > 0 ? { rate: Number(rate) } : {}),
  }
  const plan = useMutation({ mutationFn: () => api.replayNode({ ...input, dryRun: true }) })
  const run = useMutation({
    // A call ends after 20 seconds. The same request continues the replay.
    mutationFn: async (): Promise<Report> => {
      let report = await api.replayNode(input)
      while (!report.done) report = await api.replayNode({ ...input, id: report.id })
      return report
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['pipeline'] }),
  })
  const error = run.error ?? plan.error
  return (
    <Modal opened onClose={onClose} title={`Replay dead records of ${node.name}`}>
      <Stack gap={16}>
        <Text size="sm">
          Dead records go back to the topics that they came from, and run through the node again.
          Records that were replayed before are left alone.
        </Text>
        <TextInput
          label="Only with this in the error message"
          value={message}
          maxLength={1000}
          disabled={run.isPending}
          onChange={({ currentTarget }) => {
            setMessage(currentTarget.value)
            plan.reset()
            run.reset()
          }}
          data-autofocus
        />
        <NumberInput
          label="Records per second"
          description="Empty: as fast as possible."
          min={1}
          max={1_000_000}
          value={rate}
          disabled={run.isPending}
          onChange={setRate}
        />
        {error && (
          <Alert color="red" role="alert">
            {problemText(error)}
          </Alert>
        )}
        {run.data ? <Result report={run.data} /> : plan.data && <Result report={plan.data} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          {run.data === undefined &&
            (plan.data === undefined ? (
              <Button loading={plan.isPending} onClick={() => plan.mutate()}>
                Count matching records
              </Button>
            ) : (
              <Button
                loading={run.isPending}
                disabled={plan.data.sent === 0}
                onClick={() => run.mutate()}
              >
                Replay {formatAmount(plan.data.sent, 'record')}
              </Button>
            ))}
        </Group>
      </Stack>
    </Modal>
  )
}

function Result({ report }: { report: Report }) {
  return (
    <div role="status">
      <Facts
        facts={[
          [report.dryRun ? 'Would be replayed' : 'Replayed', formatCount(report.sent)],
          ['Not matching, or replayed before', formatCount(report.passed)],
          ['Replayed too often, set aside', formatCount(report.quarantined)],
          ['Cannot be returned unchanged', formatCount(report.left)],
        ]}
      />
    </div>
  )
}
