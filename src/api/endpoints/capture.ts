import { z } from 'zod'
import { endpoint, streamEndpoint } from '../endpoint.ts'
import { captured, capturedLine, captureInput } from '../schemas/capture.ts'

const onCapture = {
  method: 'POST',
  path: '/api/capture',
  tag: 'Capture',
  permission: 'letter:capture',
  bounds: 'capture',
} as const

export const captureEndpoints = {
  capture: endpoint({
    ...onCapture,
    summary:
      'Stores a failure, also as a CloudEvent. It returns when the letter is as durable as the store.',
    body: 'json or event',
    input: captureInput,
    output: captured,
    status: 201,
    repeatable: true,
  }),
  captureMany: streamEndpoint({
    ...onCapture,
    summary: 'Stores a failure for each line, and returns a line for each: a letter or a problem.',
    body: 'lines',
    line: captureInput,
    input: z.strictObject({}),
    output: capturedLine,
    stream: 'lines',
  }),
}
