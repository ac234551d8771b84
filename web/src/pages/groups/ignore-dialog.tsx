import { useState } from 'react'
import { Button, Group, Modal, NumberInput, Select, Stack, Text } from '@mantine/core'
import { useNow } from '../../app/preferences.tsx'

interface Limits {
  until?: string
  count?: number
  rate?: number
}

const hourMs = 3_600_000
const times = [
  { value: '', label: 'No time limit' },
  { value: '1', label: '1 hour' },
  { value: '24', label: '1 day' },
  { value: '168', label: '7 days' },
  { value: '720', label: '30 days' },
]

/** Asks until when a group is ignored. */
export function IgnoreDialog({
  onIgnore,
  onClose,
}: {
  onIgnore: (limits: Limits) => void
  onClose: () => void
}) {
  const now = useNow()
  const [hours, setHours] = useState('')
  const [count, setCount] = useState<number | string>('')
  const [rate, setRate] = useState<number | string>('')
  return (
    <Modal opened onClose={onClose} title="Ignore this group">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onIgnore({
            ...(hours === ''
              ? {}
              : { until: new Date(now + Number(hours) * hourMs).toISOString() }),
            ...(typeof count === 'number' ? { count } : {}),
            ...(typeof rate === 'number' ? { rate } : {}),
          })
        }}
      >
        <Stack gap={12}>
          <Text size="sm">
            The group is open again when the first of these limits is passed. Without a limit, it is
            ignored until somebody reopens it. Its letters are still stored and retried.
          </Text>
          <Select
            label="Time"
            data={times}
            value={hours}
            allowDeselect={false}
            onChange={(value) => setHours(value ?? '')}
          />
          <NumberInput
            label="Further failures"
            placeholder="No limit"
            min={1}
            allowDecimal={false}
            value={count}
            onChange={setCount}
          />
          <NumberInput
            label="Failures in one hour"
            placeholder="No limit"
            min={1}
            allowDecimal={false}
            value={rate}
            onChange={setRate}
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">Ignore</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
