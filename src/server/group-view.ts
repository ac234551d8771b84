import type { GroupDetailView, GroupView } from '../api/schemas/group.ts'
import type { Group, GroupDetail } from '../letter/group.ts'
import { mayReadContent } from './view.ts'
import type { Viewer } from './viewer.ts'

/** A group of a list as a caller may see it. */
export function viewGroup(group: Group, caller: Viewer): GroupView {
  if (!mayReadContent(caller)) return { ...group, title: '', hidden: true }
  return { ...group, title: redactFor([group.queue], group.title, caller) }
}

/** A group with its notes as a caller may see it. */
export function viewGroupDetail(group: GroupDetail, caller: Viewer): GroupDetailView {
  if (!mayReadContent(caller)) return hideGroup(group)
  const queues = [group.queue, ...group.queues.map(({ name }) => name)]
  const redact = (text: string): string => redactFor(queues, text, caller)
  return {
    ...group,
    title: redact(group.title),
    notes: group.notes.map((note) => ({ ...note, text: redact(note.text) })),
    history: group.history.map((change) =>
      change.note === undefined ? change : { ...change, note: redact(change.note) },
    ),
  }
}

/** A group without what comes from errors and people. */
export function hideGroup(group: GroupDetailView): GroupDetailView {
  return { ...group, title: '', notes: [], history: group.history.map(hideNote), hidden: true }
}

type Change = GroupDetailView['history'][number]

function hideNote(change: Change): Change {
  const { note: _, ...rest } = change
  return rest
}

/** Text that comes from some of the queues. */
function redactFor(queues: readonly string[], text: string, caller: Viewer): string {
  return [...new Set(queues)].reduce(
    (shown, queue) => caller.redaction(queue)?.text(shown) ?? shown,
    text,
  )
}
