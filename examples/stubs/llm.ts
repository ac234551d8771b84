import { startStub, type Stub } from './server.ts'

/** A language model that turns every prompt into capitals. */
export function startLlm(): Promise<Stub> {
  return startStub((_method, _path, body) => {
    const { prompt } = body as { prompt: string }
    return { completion: prompt.toUpperCase() }
  })
}
