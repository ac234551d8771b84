import type { eventEndpoints } from '../../api/endpoints/events.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { boundFilter } from '../bounds.ts'
import type { FeedFilter } from '../feed/scope-feed.ts'
import type { Handlers } from './handler.ts'

export const eventHandlers: Handlers<keyof typeof eventEndpoints> = {
  watchEvents({ after, ...filter }, context) {
    const { feed, caller, lastEventId, isStillAllowed, disconnect, signal } = context
    const { queue, tenant } = boundFilter(withoutUndefined(filter), caller)
    const position = lastEventId ?? after
    const bounded: FeedFilter = {
      ...(queue === undefined ? {} : { queue: [queue].flat() }),
      ...(tenant === undefined ? {} : { tenant }),
    }
    return feed.subscribe({
      caller,
      filter: bounded,
      isStillAllowed,
      disconnect,
      signal,
      ...(position === undefined ? {} : { after: position }),
    })
  },
}
