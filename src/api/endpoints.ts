import type { z } from 'zod'
import type { Endpoint } from './endpoint.ts'
import { auditEndpoints } from './endpoints/audit.ts'
import { bulkEndpoints } from './endpoints/bulk.ts'
import { captureEndpoints } from './endpoints/capture.ts'
import { erasureEndpoints } from './endpoints/erasures.ts'
import { eventEndpoints } from './endpoints/events.ts'
import { groupEndpoints } from './endpoints/groups.ts'
import { keyEndpoints } from './endpoints/keys.ts'
import { letterEndpoints } from './endpoints/letters.ts'
import { pipelineEndpoints } from './endpoints/pipeline.ts'
import { queueEndpoints } from './endpoints/queues.ts'
import { reportEndpoints } from './endpoints/reports.ts'
import { seriesEndpoints } from './endpoints/series.ts'
import { sessionEndpoints } from './endpoints/session.ts'
import { systemEndpoints } from './endpoints/system.ts'
import { tokenEndpoints } from './endpoints/tokens.ts'
import { transferEndpoints } from './endpoints/transfer.ts'
import { viewEndpoints } from './endpoints/views.ts'
import { workerEndpoints } from './endpoints/workers.ts'

/** All endpoints. A route that is not here does not exist. */
export const endpoints = {
  ...letterEndpoints,
  ...viewEndpoints,
  ...captureEndpoints,
  ...transferEndpoints,
  ...groupEndpoints,
  ...bulkEndpoints,
  ...queueEndpoints,
  ...reportEndpoints,
  ...seriesEndpoints,
  ...pipelineEndpoints,
  ...tokenEndpoints,
  ...auditEndpoints,
  ...erasureEndpoints,
  ...keyEndpoints,
  ...eventEndpoints,
  ...sessionEndpoints,
  ...workerEndpoints,
  ...systemEndpoints,
}

export type EndpointName = keyof typeof endpoints
/** What a caller sends to an endpoint. */
export type InputOf<N extends EndpointName> = z.input<(typeof endpoints)[N]['input']>
/** What a handler gets: the input after validation. */
export type ReadInputOf<N extends EndpointName> = z.output<(typeof endpoints)[N]['input']>
export type OutputOf<N extends EndpointName> = z.output<(typeof endpoints)[N]['output']>

/** Whether the response of an endpoint is a stream. */
export type IsStream<N extends EndpointName> = (typeof endpoints)[N] extends { stream: string }
  ? true
  : false

export const endpointNames = Object.keys(endpoints) as EndpointName[]

export function endpointOf(name: EndpointName): Endpoint {
  return endpoints[name]
}
