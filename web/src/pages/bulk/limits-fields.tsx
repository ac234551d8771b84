import { Checkbox, Group, NumberInput, Stack, Switch, Text, TextInput } from '@mantine/core'
import { needsReason, type BulkActionName } from './bulk-request.ts'
import { ReasonInput } from './action-input.tsx'
import { isHalfWindow, type PlanForm } from './plan-form.ts'

interface FieldsProps {
  action: BulkActionName
  form: PlanForm
  onChange: (change: Partial<PlanForm>) => void
}

/** How fast, when and how carefully an action runs. */
export function LimitsFields({ action, form, onChange }: FieldsProps) {
  return (
    <Stack gap={16}>
      <Group gap={12} align="flex-start" grow>
        <NumberInput
          size="xs"
          label="Rate"
          description="Letters per second. Empty: no limit."
          value={form.rate}
          min={0.01}
          max={1_000_000}
          onChange={(value) => onChange({ rate: numberOf(value) })}
        />
        <NumberInput
          size="xs"
          label="At the same time"
          description="Letters without a known outcome. Empty: the default."
          value={form.concurrency}
          min={1}
          max={1_000_000}
          allowDecimal={false}
          onChange={(value) => onChange({ concurrency: numberOf(value) })}
        />
      </Group>
      <CanaryFields form={form} onChange={onChange} />
      <TimeFields action={action} form={form} onChange={onChange} />
      {(action === 'retry' || action === 'replay') && (
        <Checkbox
          size="xs"
          label="Also letters of a lane in which a newer letter has succeeded"
          checked={form.includeSuperseded}
          onChange={({ currentTarget }) => onChange({ includeSuperseded: currentTarget.checked })}
        />
      )}
      {action === 'replay' && (
        <TextInput
          size="xs"
          label="Mailbox"
          description="Empty: the source of each letter."
          value={form.mailbox}
          maxLength={1000}
          onChange={({ currentTarget }) => onChange({ mailbox: currentTarget.value })}
        />
      )}
      {!needsReason(action) && <ReasonInput form={form} onChange={onChange} isRequired={false} />}
    </Stack>
  )
}

/** A few letters first: their failures stop the action before it does harm. */
function CanaryFields({ form, onChange }: Omit<FieldsProps, 'action'>) {
  return (
    <Stack gap={8}>
      <Switch
        size="xs"
        label="Start with few letters, and stop when too many fail"
        checked={form.canary}
        onChange={({ currentTarget }) => onChange({ canary: currentTarget.checked })}
      />
      {form.canary && (
        <Group gap={12} grow align="flex-end">
          <NumberInput
            size="xs"
            label="First step (letters)"
            value={form.canaryFirst}
            min={1}
            max={100_000}
            allowDecimal={false}
            onChange={(value) => onChange({ canaryFirst: numberOf(value) || 1 })}
          />
          <NumberInput
            size="xs"
            label="Each step × "
            value={form.canaryFactor}
            min={1}
            max={1000}
            onChange={(value) => onChange({ canaryFactor: numberOf(value) || 1 })}
          />
          <NumberInput
            size="xs"
            label="May fail (%)"
            value={form.canaryLimit}
            min={0}
            max={100}
            onChange={(value) => onChange({ canaryLimit: numberOf(value) || 0 })}
          />
        </Group>
      )}
    </Stack>
  )
}

function TimeFields({ action, form, onChange }: FieldsProps) {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone
  return (
    <Stack gap={8}>
      <Group gap={12} grow align="flex-end">
        <TextInput
          size="xs"
          type="datetime-local"
          label="Not before (local time)"
          value={form.startAt}
          onChange={({ currentTarget }) => onChange({ startAt: currentTarget.value })}
        />
        {action === 'retry' && (
          <TextInput
            size="xs"
            type="datetime-local"
            label="Letters become due (local time)"
            value={form.dueAt}
            onChange={({ currentTarget }) => onChange({ dueAt: currentTarget.value })}
          />
        )}
      </Group>
      <Group gap={12} grow align="flex-end">
        <TextInput
          size="xs"
          type="time"
          label="Only between"
          value={form.windowFrom}
          onChange={({ currentTarget }) =>
            onChange({ windowFrom: currentTarget.value, timeZone: zone })
          }
        />
        <TextInput
          size="xs"
          type="time"
          label="and"
          error={isHalfWindow(form) ? 'Enter both times, or none.' : undefined}
          value={form.windowTo}
          onChange={({ currentTarget }) =>
            onChange({ windowTo: currentTarget.value, timeZone: zone })
          }
        />
      </Group>
      <Text size="xs" c="dimmed">
        Each day, in the time zone {zone}. A window may contain midnight.
      </Text>
    </Stack>
  )
}

function numberOf(value: string | number): number | '' {
  return typeof value === 'number' && Number.isFinite(value) ? value : ''
}
