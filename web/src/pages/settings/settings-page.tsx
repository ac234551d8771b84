import { Code, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { AdminOnly } from './admin-only.tsx'
import { SettingsTabs } from './settings-tabs.tsx'

type Setting = OutputOf<'getSettings'>[number]

/** The effective configuration of the server. It is changed in files, not here. */
export function SettingsPage() {
  return (
    <Page
      title="Settings"
      description="What is in force on this server, and where each value comes from. Change it in the configuration file, the environment or the command line."
    >
      <SettingsTabs />
      <AdminOnly>
        <Configuration />
      </AdminOnly>
    </Page>
  )
}

const route = getRouteApi('/signed-in/settings')

function Configuration() {
  const { name = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const settings = useQuery(queries.settings())
  return (
    <Panel
      title="Configuration"
      padded={false}
      right={
        <TextInput
          size="xs"
          aria-label="Find a setting"
          placeholder="Find a setting"
          leftSection={<Icon name="search" size={12} />}
          value={name}
          onChange={({ currentTarget: { value } }) =>
            void navigate({ search: value === '' ? {} : { name: value }, replace: true })
          }
        />
      }
    >
      <Loaded query={settings}>
        {(all) => {
          const shown = all.filter(({ key }) => key.toLowerCase().includes(name.toLowerCase()))
          return shown.length === 0 ? (
            <Empty title="No setting has this in its name" />
          ) : (
            <DataTable label="Settings" columns={columns} rows={shown} keyOf={({ key }) => key} />
          )
        }}
      </Loaded>
    </Panel>
  )
}

const columns: Column<Setting>[] = [
  { title: 'Setting', width: '30%', cell: ({ key }) => <Code>{key}</Code> },
  {
    title: 'Value',
    cell: ({ value, secret }) =>
      secret ? <span className="dim">hidden</span> : <Code>{JSON.stringify(value)}</Code>,
  },
  {
    title: 'From',
    width: '30%',
    cell: ({ from }) => (from === 'default' ? <span className="dim">default</span> : from),
  },
]
