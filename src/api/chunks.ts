/** The chunks of a body. Not every browser can iterate over a stream. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    // The stream of a lost connection rejects; there is nothing left to cancel.
    await reader.cancel().catch(() => {})
  }
}
