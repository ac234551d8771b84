import type { seriesEndpoints } from '../../api/endpoints/series.ts'
import { boundFilter } from '../bounds.ts'
import type { Handlers } from './handler.ts'

export const seriesHandlers: Handlers<keyof typeof seriesEndpoints> = {
  getSeries({ queue, by, ...query }, { series, caller }) {
    const bounded = boundFilter(queue === undefined ? {} : { queue }, caller)
    const queues = bounded.queue === undefined ? undefined : [...new Set([bounded.queue].flat())]
    return series.query({ ...query, queues, byQueue: by === 'queue' })
  },
}
