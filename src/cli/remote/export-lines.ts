import type { Client } from '../../api/client.ts'
import type { InputOf } from '../../api/endpoints.ts'

/** How a line with a letter begins. The first and the last line of an export begin otherwise. */
export const letterStart = '{"crc":'

/**
 * The lines of an export of a server, each with its line break. The client has parsed them; written
 * again, they are the same, because the server writes them in the same way.
 */
export async function* exportLines(
  client: Client,
  input: InputOf<'exportLetters'>,
): AsyncGenerator<string> {
  for await (const value of client.exportLetters(input)) yield `${JSON.stringify(value)}\n`
}
