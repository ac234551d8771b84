import type { LetterView } from 'redrive/api'

/** Where the work of a letter came from, in a few words. */
export function nameSource(source: LetterView['source']): string {
  switch (source.kind) {
    case 'operation':
      return [source.type, source.method, source.endpoint].filter(Boolean).join(' ')
    case 'mailbox':
      return `mailbox ${source.mailbox}`
    case 'workflow':
      return `workflow ${source.name}`
    case 'pipeline':
      return `topic ${source.topic}, partition ${source.partition}, offset ${source.offset}`
  }
}
