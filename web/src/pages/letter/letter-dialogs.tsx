import type { LetterView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ReasonDialog } from '../../ui/reason-dialog.tsx'
import type { ActionName } from './actions.ts'
import { EditDrawer } from './edit-drawer.tsx'
import { ReplayDialog } from './replay-dialog.tsx'
import { ReviewDialog } from './review-dialog.tsx'

const dialogNames = ['review', 'edit', 'replay', 'park', 'remove'] as const satisfies ActionName[]
export type DialogName = (typeof dialogNames)[number]

/** The dialog of an action that asks something first. Undefined: the action asks nothing. */
export function dialogOf(name: ActionName): DialogName | undefined {
  return dialogNames.find((one) => one === name)
}

/** Asks what an action needs to know, or whether to do it at all. */
export function LetterDialog({
  name,
  letter,
  isRevealed,
  onAct,
  onRemove,
  onSaved,
  onClose,
}: {
  name: DialogName
  letter: LetterView
  isRevealed: boolean
  onAct: (action: () => Promise<unknown>) => void
  onRemove: () => void
  onSaved: () => void
  onClose: () => void
}) {
  const { id, version } = letter
  const ifVersion = { ifVersion: version }
  const noteOf = (note: string): { note?: string } => (note === '' ? {} : { note })
  switch (name) {
    case 'park':
      return (
        <ReasonDialog
          title="Park this letter"
          explanation="It is set aside: no retries until a person decides."
          action="Park"
          label="Note for the person who decides"
          required={false}
          onClose={onClose}
          onConfirm={(note) => onAct(() => api.parkLetter({ id, ...noteOf(note) }, ifVersion))}
        />
      )
    case 'remove':
      return (
        <ConfirmDialog
          title="Remove this letter"
          explanation="The letter is deleted with its payload and history. This cannot be undone. To hide it from lists, archive it instead."
          action="Remove 1 letter"
          danger
          onClose={onClose}
          onConfirm={onRemove}
        />
      )
    case 'review':
      return (
        <ReviewDialog
          onClose={onClose}
          onDecide={(decision, note) =>
            onAct(() => api.reviewLetter({ id, decision, ...noteOf(note) }, ifVersion))
          }
        />
      )
    case 'replay':
      return (
        <ReplayDialog
          source={letter.source}
          onClose={onClose}
          onReplay={(to) =>
            onAct(() => api.replayLetter({ id, ...(to === '' ? {} : { to }) }, ifVersion))
          }
        />
      )
    case 'edit':
      return <EditDrawer {...{ letter, isRevealed, onClose, onSaved }} />
  }
}
