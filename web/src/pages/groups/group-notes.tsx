import type { GroupDetailView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { useCan } from '../../app/session.tsx'
import { NotesPanel } from '../../ui/notes-panel.tsx'
import { useGroupAction } from './use-group-action.ts'

export function GroupNotes({ group: { fingerprint, notes } }: { group: GroupDetailView }) {
  const can = useCan()
  const { mutateAsync } = useGroupAction(fingerprint)
  return (
    <NotesPanel
      notes={notes}
      onAdd={
        can('group:edit')
          ? (text) => mutateAsync(() => api.noteGroup({ fingerprint, text }))
          : undefined
      }
    />
  )
}
