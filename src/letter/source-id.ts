import type { DeadLetter } from './letter.ts'

type Sourced = Pick<DeadLetter, 'source' | 'task'>

/**
 * The id of the work in the source of a letter: `taskId` of a workflow, `messageId` of a
 * mailbox, `streamId` of a pipeline, and for an operation the id of its task. Undefined when the
 * source has none. Always well-formed Unicode.
 */
export function sourceIdOf({ source, task }: Sourced): string | undefined {
  const id = idIn(source) ?? task?.id
  return id === undefined || id === '' ? undefined : id.toWellFormed()
}

function idIn(source: Sourced['source']): string | undefined {
  switch (source.kind) {
    case 'workflow':
      return source.taskId
    case 'mailbox':
      return source.messageId
    case 'pipeline':
      return source.streamId
    case 'operation':
      return undefined
  }
}
