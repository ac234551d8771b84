import { SegmentedControl, Stack, TagsInput, Text, Textarea, TextInput } from '@mantine/core'
import { priorities } from 'redrive/api'
import { needsReason, type BulkActionName } from './bulk-request.ts'
import { patchProblem, type PlanForm } from './plan-form.ts'

interface InputProps {
  action: BulkActionName
  form: PlanForm
  onChange: (change: Partial<PlanForm>) => void
}

const patchExample = '[\n  { "op": "replace", "path": "/currency", "value": "EUR" }\n]'

/** What an action needs to know before it can be planned. */
export function ActionInput({ action, form, onChange }: InputProps) {
  return (
    <Stack gap={12}>
      {action === 'priority' && (
        <div>
          <Text size="sm" fw={500} id="new-priority">
            New priority
          </Text>
          <SegmentedControl
            size="xs"
            aria-labelledby="new-priority"
            data={[...priorities]}
            value={form.priority}
            onChange={(priority) => onChange({ priority })}
          />
        </div>
      )}
      {action === 'tag' && (
        <>
          <TagsInput
            size="xs"
            label="Tags to add"
            value={form.addTags}
            onChange={(addTags) => onChange({ addTags })}
            maxTags={100}
          />
          <TagsInput
            size="xs"
            label="Tags to remove"
            value={form.removeTags}
            onChange={(removeTags) => onChange({ removeTags })}
            maxTags={100}
          />
        </>
      )}
      {action === 'edit' && <EditInput form={form} onChange={onChange} />}
      {needsReason(action) && <ReasonInput form={form} onChange={onChange} isRequired />}
    </Stack>
  )
}

function EditInput({ form, onChange }: Omit<InputProps, 'action'>) {
  const isPatch = form.transform.trim() === ''
  return (
    <>
      <Textarea
        size="xs"
        label="JSON Patch of the payload"
        description="Operations of RFC 6902, applied to each payload. A payload that does not fit stays as it is."
        placeholder={patchExample}
        autosize
        minRows={4}
        maxRows={12}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        value={form.patch}
        disabled={!isPatch}
        error={isPatch && form.patch.trim() !== '' ? patchProblem(form.patch) : undefined}
        onChange={({ currentTarget }) => onChange({ patch: currentTarget.value })}
      />
      <TextInput
        size="xs"
        label="Or a transform"
        description="The name of a function that the server has (option transforms)."
        value={form.transform}
        maxLength={1000}
        onChange={({ currentTarget }) => onChange({ transform: currentTarget.value })}
      />
    </>
  )
}

/** Why somebody does this. The audit log keeps it, and whoever approves the plan reads it. */
export function ReasonInput({
  form,
  onChange,
  isRequired,
}: Omit<InputProps, 'action'> & { isRequired: boolean }) {
  return (
    <Textarea
      size="xs"
      label="Reason"
      description="The audit log keeps it, and whoever approves the plan reads it."
      autosize
      maxRows={4}
      maxLength={1000}
      required={isRequired}
      value={form.reason}
      onChange={({ currentTarget }) => onChange({ reason: currentTarget.value })}
    />
  )
}
