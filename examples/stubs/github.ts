import { startStub, type Stub } from './server.ts'

/** The comments of issues: GET lists them, POST adds one. */
export function startGitHub(): Promise<Stub> {
  const comments = new Map<string, { body: string }[]>()
  return startStub((method, path, sent) => {
    const known = comments.get(path) ?? []
    if (method !== 'POST') return known
    const comment = sent as { body: string }
    comments.set(path, [...known, comment])
    return comment
  })
}
