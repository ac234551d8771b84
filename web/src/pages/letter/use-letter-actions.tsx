import { useState, type ReactNode } from 'react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { LetterView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { showProblem } from '../../ui/toast.ts'
import { showUndo } from '../../ui/undo-toast.tsx'
import type { ActionName } from './actions.ts'
import { dialogOf, LetterDialog, type DialogName } from './letter-dialogs.tsx'

export interface LetterActions {
  run: (name: ActionName) => void
  isRunning: boolean
  /** What an action asks first. */
  dialog: ReactNode
}

/** Runs actions on a letter, and reads again what they change. */
export function useLetterActions(letter: LetterView, isRevealed: boolean): LetterActions {
  const { id, version } = letter
  const ifVersion = { ifVersion: version }
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<DialogName | undefined>()
  const close = (): void => setDialog(undefined)
  const refresh = (): void => {
    for (const subject of ['letters', 'groups', 'counts', 'queues'])
      void queryClient.invalidateQueries({ queryKey: [subject] })
  }
  const { mutate, isPending } = useMutation({
    mutationFn: (act: () => Promise<unknown>) => act(),
    // Also after a problem: most often, the letter has changed since it was read.
    onSettled: refresh,
    onError: showProblem,
  })
  const act = (action: () => Promise<unknown>): void => {
    close()
    mutate(action)
  }
  const archive = async (): Promise<void> => {
    await api.archiveLetter({ id }, ifVersion)
    showUndo('The letter is archived.', () => mutate(() => api.restoreLetter({ id })))
  }
  const remove = async (): Promise<void> => {
    await api.removeLetter({ id }, ifVersion)
    await navigate({ to: '/letters' })
  }
  const run = (name: ActionName): void => {
    const asked = dialogOf(name)
    if (asked) setDialog(asked)
    else if (name === 'retry') act(() => api.retryLetter({ id }, ifVersion))
    else if (name === 'resolve') act(() => api.resolveLetter({ id }, ifVersion))
    else if (name === 'restore') act(() => api.restoreLetter({ id }, ifVersion))
    else if (name === 'undo') act(() => api.undoEdit({ id }, ifVersion))
    else if (name === 'archive') act(archive)
  }
  const shown = dialog && (
    <LetterDialog
      name={dialog}
      letter={letter}
      isRevealed={isRevealed}
      onAct={act}
      onRemove={() => act(remove)}
      onSaved={refresh}
      onClose={close}
    />
  )
  return { run, isRunning: isPending, dialog: shown }
}
