import { useState } from 'react'
import { Badge, Button, Group } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { OutputOf, TokenView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Id } from '../../ui/id.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { showProblem } from '../../ui/toast.ts'
import { AdminOnly } from './admin-only.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { NewTokenDialog } from './new-token-dialog.tsx'
import { SecretDialog } from './secret-dialog.tsx'
import { SettingsTabs } from './settings-tabs.tsx'

type NewToken = OutputOf<'createToken'>

/** Who may call the server. */
export function TokensPage() {
  return (
    <Page title="Settings" label="Tokens">
      <SettingsTabs />
      <AdminOnly>
        <Tokens />
      </AdminOnly>
    </Page>
  )
}

function Tokens() {
  const queryClient = useQueryClient()
  const tokens = useQuery(queries.tokens())
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<NewToken>()
  const showNew = (created: NewToken): void => {
    setCreating(false)
    setSecret(created)
    void queryClient.invalidateQueries({ queryKey: ['tokens'] })
  }
  return (
    <>
      <Panel
        title="Tokens"
        padded={false}
        right={<Button onClick={() => setCreating(true)}>Create a token</Button>}
      >
        <Loaded query={tokens}>
          {(list) =>
            list.length === 0 ? (
              <Empty title="There are no tokens">
                Programs and people need a token to use the API.
              </Empty>
            ) : (
              <DataTable
                label="Tokens"
                columns={columnsWith(showNew)}
                rows={list}
                keyOf={({ id }) => id}
              />
            )
          }
        </Loaded>
      </Panel>
      {isCreating && <NewTokenDialog onClose={() => setCreating(false)} onCreated={showNew} />}
      {secret && <SecretDialog created={secret} onClose={() => setSecret(undefined)} />}
    </>
  )
}

function columnsWith(onRotated: (created: NewToken) => void): Column<TokenView>[] {
  return [
    { title: 'Name', cell: ({ name }) => <bdi>{name}</bdi> },
    {
      title: 'May',
      cell: ({ role, permissions }) =>
        role === undefined ? (permissions ?? []).join(', ') : <Badge color="gray">{role}</Badge>,
    },
    {
      title: 'Limited to',
      cell: ({ queues, tenants }) =>
        [...(queues ?? []), ...(tenants ?? []).map((tenant) => `tenant ${tenant}`)].join(', ') || (
          <span className="dim">everything</span>
        ),
    },
    { title: 'Id', cell: ({ id }) => <Id id={id} /> },
    {
      title: 'Last used',
      cell: ({ lastUsedAt }) =>
        lastUsedAt ? <Time at={lastUsedAt} /> : <span className="dim">never</span>,
    },
    {
      title: 'Expires',
      cell: ({ expiresAt }) =>
        expiresAt ? <Time at={expiresAt} /> : <span className="dim">never</span>,
    },
    {
      title: '',
      label: 'Actions',
      align: 'right',
      width: 180,
      cell: (token) => <TokenActions token={token} onRotated={onRotated} />,
    },
  ]
}

function TokenActions({
  token: { id, name },
  onRotated,
}: {
  token: TokenView
  onRotated: (created: NewToken) => void
}) {
  const queryClient = useQueryClient()
  const [asked, setAsked] = useState<'rotate' | 'revoke'>()
  const rotate = useMutation({
    mutationFn: () => api.rotateToken({ id }),
    onSuccess: onRotated,
    onError: showProblem,
  })
  const revoke = useMutation({
    mutationFn: () => api.revokeToken({ id }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['tokens'] }),
    onError: showProblem,
  })
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      <Button variant="default" onClick={() => setAsked('rotate')} aria-label={`Rotate ${name}`}>
        Rotate
      </Button>
      <Button variant="default" onClick={() => setAsked('revoke')} aria-label={`Revoke ${name}`}>
        Revoke
      </Button>
      {asked !== undefined && (
        <ConfirmDialog
          title={asked === 'rotate' ? `Rotate ${name}` : `Revoke ${name}`}
          explanation={
            asked === 'rotate'
              ? 'The token gets a new secret, which is shown once. The old secret stops working at once.'
              : 'Whoever uses this token is refused from now on. This cannot be undone.'
          }
          action={asked === 'rotate' ? 'Rotate the token' : 'Revoke the token'}
          danger={asked === 'revoke'}
          onClose={() => setAsked(undefined)}
          onConfirm={() => {
            setAsked(undefined)
            ;(asked === 'rotate' ? rotate : revoke).mutate()
          }}
        />
      )}
    </Group>
  )
}
