import type { erasureEndpoints } from '../../api/endpoints/erasures.ts'
import type { Handlers } from './handler.ts'

export const erasureHandlers: Handlers<keyof typeof erasureEndpoints> = {
  eraseSubject: ({ subject, reason }, { dlq, caller }) =>
    dlq.eraseSubject(subject, { by: caller.name, reason }),
}
