import { createInterface } from 'node:readline/promises'
import { terminal } from './terminal.ts'

/** Whether somebody can answer a question. */
export function canAsk(): boolean {
  return terminal.stdin.isTTY && terminal.stdout.isTTY
}

/** Asks on the terminal. Ctrl-C and the end of the input are an empty answer. */
export async function askPerson(question: string): Promise<string> {
  const prompt = createInterface({ input: terminal.stdin, output: terminal.stdout })
  const closed = new AbortController()
  prompt.once('close', () => closed.abort())
  const answer = await prompt.question(question, { signal: closed.signal }).catch(() => '')
  prompt.close()
  return answer.trim()
}

export function isYes(answer: string): boolean {
  return /^y(es)?$/i.test(answer)
}
