import type { z } from 'zod'
import type { Endpoint } from './endpoint.ts'
import { captureEndpoints } from './endpoints/capture.ts'
import { letterEndpoints } from './endpoints/letters.ts'
import { systemEndpoints } from './endpoints/system.ts'
import { transferEndpoints } from './endpoints/transfer.ts'

/** All endpoints. A route that is not here does not exist. */
export const endpoints = {
  ...letterEndpoints,
  ...captureEndpoints,
  ...transferEndpoints,
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
