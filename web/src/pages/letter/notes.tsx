import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { LetterView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { useCan } from '../../app/session.tsx'
import { NotesPanel } from '../../ui/notes-panel.tsx'

/** The notes in the history of a letter, and a form for another one. */
export function Notes({ letter }: { letter: LetterView }) {
  const can = useCan()
  const queryClient = useQueryClient()
  const add = useMutation({
    mutationFn: (text: string) => api.noteLetter({ id: letter.id, text }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['letters', 'one', letter.id] }),
  })
  const notes = letter.history.flatMap(({ action, note, at, actor }) =>
    note !== undefined && action === 'note' ? [{ at, by: actor, text: note }] : [],
  )
  return (
    <NotesPanel
      notes={notes}
      onAdd={can('letter:retry') ? (text) => add.mutateAsync(text) : undefined}
    />
  )
}
