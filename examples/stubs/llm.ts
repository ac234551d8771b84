import { startStub, type Stub } from './server.ts'

/** A language model that converts every prompt to upper case. */
export function startLlm(): Promise<Stub> {
  return startStub((_method, _path, body) => {
    const { prompt } = body as { prompt: string }
    return { completion: prompt.toUpperCase() }
  })
}
