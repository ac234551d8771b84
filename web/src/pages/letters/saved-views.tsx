import { useState } from 'react'
import { Button, Group, Menu, Modal, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { FilterInput, SavedView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { useCaller, useCan } from '../../app/session.tsx'
import { Icon } from '../../ui/icon.tsx'
import { problemText } from '../../ui/problem.tsx'
import { showProblem } from '../../ui/toast.ts'
import { parseLettersSearch, type LettersSearch } from './letters-search.ts'

interface SavedViewsProps {
  search: LettersSearch
  filter: FilterInput
  columns: readonly string[]
  onSearch: (search: LettersSearch) => void
}

type ViewInput = Pick<SavedView, 'name' | 'filter' | 'order' | 'columns' | 'shared'>

/** Lists of letters that people have saved under a name. */
export function SavedViews(props: SavedViewsProps) {
  const { search, onSearch } = props
  const { data: views = [] } = useQuery(queries.views())
  const caller = useCaller()
  const can = useCan()
  const [dialog, setDialog] = useState<'create' | 'change'>()
  const opened = views.find(({ id }) => id === search.view)
  const mayChange = opened && (opened.owner === caller?.name || (opened.shared && can('admin')))
  const remove = useRemoveView(onSearch, search)
  const own = views.filter(({ owner }) => owner === caller?.name)
  const others = views.filter(({ owner }) => owner !== caller?.name)
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <Button variant="default" rightSection={<Icon name="down" size={12} />} maw={240}>
            {opened ? <bdi className="line">{opened.name}</bdi> : 'Saved views'}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length === 0 && (
            <Text size="xs" c="dimmed" px={12} py={8}>
              A saved view keeps the filter, the order and the columns under a name.
            </Text>
          )}
          <ViewItems label="Your views" views={own} opened={opened?.id} onSearch={onSearch} />
          <ViewItems label="Shared views" views={others} opened={opened?.id} onSearch={onSearch} />
          {views.length > 0 && <Menu.Divider />}
          <Menu.Item onClick={() => setDialog('create')}>Save this list as a view</Menu.Item>
          {mayChange && (
            <>
              <Menu.Item onClick={() => setDialog('change')}>Rename, share or update</Menu.Item>
              <Menu.Item color="red" onClick={() => remove.mutate(opened)}>
                Remove this view
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {dialog && (
        <ViewDialog
          {...props}
          {...(dialog === 'change' && opened ? { view: opened } : {})}
          onClose={() => setDialog(undefined)}
        />
      )}
    </>
  )
}

function useRemoveView(onSearch: (search: LettersSearch) => void, search: LettersSearch) {
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: ({ id, version }: SavedView) => api.removeView({ id }, { ifVersion: version }),
    onSuccess: () => {
      const { view: _, ...rest } = search
      onSearch(rest)
    },
    onError: showProblem,
    onSettled: () => queryClient.invalidateQueries({ queryKey: queries.views().queryKey }),
  })
}

function ViewItems({
  label,
  views,
  opened,
  onSearch,
}: {
  label: string
  views: readonly SavedView[]
  opened: string | undefined
  onSearch: (search: LettersSearch) => void
}) {
  if (views.length === 0) return null
  return (
    <>
      <Menu.Label>{label}</Menu.Label>
      {views.map((view) => (
        <Menu.Item
          key={view.id}
          onClick={() => onSearch(searchOf(view))}
          rightSection={view.id === opened ? <Icon name="check" size={12} /> : undefined}
        >
          <bdi>{view.name}</bdi>
        </Menu.Item>
      ))}
    </>
  )
}

/** The search that shows a view. */
function searchOf({ id, filter, order, columns }: SavedView): LettersSearch {
  return parseLettersSearch({ ...filter, order, columns, view: id })
}

/** Creates a view, or replaces one. */
function useSaveView(view: SavedView | undefined, onSaved: (saved: SavedView) => void) {
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: (input: ViewInput) =>
      view
        ? api.replaceView({ id: view.id, ...input }, { ifVersion: view.version })
        : api.createView(input),
    onSuccess: async (saved) => {
      await queryClient.invalidateQueries({ queryKey: queries.views().queryKey })
      onSaved(saved)
    },
  })
}

/** Saves the list under a new name, or changes a view. */
function ViewDialog({
  search,
  filter,
  columns,
  onSearch,
  view,
  onClose,
}: SavedViewsProps & { view?: SavedView; onClose: () => void }) {
  const [name, setName] = useState(view?.name ?? '')
  const [shared, setShared] = useState(view?.shared ?? false)
  const [takesList, setTakesList] = useState(view === undefined)
  const list = takesList || !view ? { filter, columns: [...columns], order: search.order } : view
  const save = useSaveView(view, (saved) => {
    onSearch({ ...(takesList ? search : searchOf(saved)), view: saved.id })
    onClose()
  })
  const input: ViewInput = {
    name: name.trim(),
    shared,
    filter: list.filter,
    ...(list.order ? { order: list.order } : {}),
    ...(list.columns ? { columns: list.columns } : {}),
  }
  return (
    <Modal opened onClose={onClose} title={view ? 'Change the view' : 'Save this list as a view'}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate(input)
        }}
      >
        <Stack gap={12}>
          <TextInput
            label="Name"
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            maxLength={100}
            required
            data-autofocus
            error={save.error ? problemText(save.error) : undefined}
          />
          <Switch
            label="Share with everybody who may see these letters"
            checked={shared}
            onChange={({ currentTarget }) => setShared(currentTarget.checked)}
          />
          {view && (
            <Switch
              label="Replace its filter, order and columns with those of the current list"
              checked={takesList}
              onChange={({ currentTarget }) => setTakesList(currentTarget.checked)}
            />
          )}
          {takesList && search.last !== undefined && (
            <Text size="sm" c="dimmed">
              The time range is saved as the time at which it begins now.
            </Text>
          )}
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={save.isPending} disabled={name.trim() === ''}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
