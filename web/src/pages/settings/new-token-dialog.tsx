import { useState } from 'react'
import {
  Button,
  Group,
  Modal,
  NativeSelect,
  NumberInput,
  Stack,
  TagsInput,
  TextInput,
} from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { roles, type OutputOf, type Role } from 'redrive/api'
import { api } from '../../api/client.ts'
import { oneOf } from '../../app/search-params.ts'
import { showProblem } from '../../ui/toast.ts'

const dayMs = 86_400_000
const roleTexts: Record<Role, string> = {
  viewer: 'viewer: sees letters without their content',
  operator: 'operator: reads, edits, retries and archives letters',
  admin: 'admin: everything, also tokens and removal',
}

/** Asks what a new token may do, and creates it. */
export function NewTokenDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (created: OutputOf<'createToken'>) => void
}) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [queues, setQueues] = useState<string[]>([])
  const [tenants, setTenants] = useState<string[]>([])
  const [days, setDays] = useState<string | number>('')
  const create = useMutation({
    mutationFn: () =>
      api.createToken({
        name: name.trim(),
        role,
        ...(queues.length > 0 ? { queues } : {}),
        ...(tenants.length > 0 ? { tenants } : {}),
        ...(Number(days) > 0
          ? { expiresAt: new Date(Date.now() + Number(days) * dayMs).toISOString() }
          : {}),
      }),
    onSuccess: onCreated,
    onError: showProblem,
  })
  return (
    <Modal opened onClose={onClose} title="Create a token">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate()
        }}
      >
        <Stack gap={16}>
          <TextInput
            label="Name"
            description="Who or what will use it. The history of letters shows this name."
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            required
            maxLength={200}
            data-autofocus
          />
          <NativeSelect
            label="Role"
            value={role}
            onChange={({ currentTarget }) => setRole(oneOf(roles, currentTarget.value) ?? 'viewer')}
            data={roles.map((value) => ({ value, label: roleTexts[value] }))}
          />
          <ScopeFields {...{ queues, setQueues, tenants, setTenants }} />
          <NumberInput
            label="Expires after days"
            description="Empty: the token does not expire."
            value={days}
            onChange={setDays}
            min={1}
            max={3650}
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending}>
              Create the token
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** The part of the store that the token is limited to. */
function ScopeFields({
  queues,
  setQueues,
  tenants,
  setTenants,
}: {
  queues: string[]
  setQueues: (queues: string[]) => void
  tenants: string[]
  setTenants: (tenants: string[]) => void
}) {
  return (
    <>
      <TagsInput
        label="Queues"
        description="Empty: all queues."
        value={queues}
        onChange={setQueues}
      />
      <TagsInput
        label="Tenants"
        description="Empty: the letters of all tenants."
        value={tenants}
        onChange={setTenants}
      />
    </>
  )
}
