import type { IncomingMessage } from 'node:http'
import { captureRequest } from './capture.ts'
import type { HttpClient } from './http-client.ts'
import { withServer } from './load.ts'
import type { ServerProcess } from './server-process.ts'

export interface StreamResult {
  captured: number
  exported: number
  imported: number
  /** Resident memory of the first server during the capture and the export, then of the second. */
  memoryBytes: { capture: number[]; export: number[]; import: number[] }
  /** Lines per second. */
  rates: { capture: number; transfer: number }
}

const lines = { 'content-type': 'application/x-ndjson' }
const sampleMs = 250

/**
 * Captures many lines in one request, then exports them from one server into another. No server
 * and no client ever has all of them in memory.
 */
export function streamLines(count: number, store?: string): Promise<StreamResult> {
  return withServer(
    store,
    (first, from) =>
      withServer(undefined, (second, to) => transfer(count, { first, from, second, to }), 2),
    2,
  )
}

interface Servers {
  first: ServerProcess
  from: HttpClient
  second: ServerProcess
  to: HttpClient
}

async function transfer(
  count: number,
  { first, from, second, to }: Servers,
): Promise<StreamResult> {
  const startMs = performance.now()
  const captureMemory = sampleMemory(first)
  const captured = await captureLines(count, from)
  const capturedMs = performance.now()
  const memory = { capture: captureMemory.stop() }
  const exportMemory = sampleMemory(first)
  const importMemory = sampleMemory(second)
  let exported = 0
  const source = await from.open({ method: 'GET', path: '/api/export' })
  const counted = async function* (): AsyncGenerator<string> {
    for await (const chunk of source.setEncoding('utf8') as AsyncIterable<string>) {
      exported += chunk.split('\n').length - 1
      yield chunk
    }
  }
  const response = await to.open({
    method: 'POST',
    path: '/api/import',
    headers: lines,
    lines: counted(),
  })
  const report = JSON.parse(await readAll(response)) as { added?: number; detail?: string }
  if (report.added === undefined) throw new Error(`the import failed: ${JSON.stringify(report)}`)
  const rate = (ms: number): number => Math.round((count / ms) * 1000)
  return {
    captured,
    // Without the header and the footer.
    exported: exported - 2,
    imported: report.added,
    memoryBytes: { ...memory, export: exportMemory.stop(), import: importMemory.stop() },
    rates: {
      capture: rate(capturedMs - startMs),
      transfer: rate(performance.now() - capturedMs),
    },
  }
}

async function captureLines(count: number, client: HttpClient): Promise<number> {
  const generate = async function* (): AsyncGenerator<string> {
    for (let n = 0; n < count; n++) yield `${captureRequest(`line-${n}`, false).body!.toString()}\n`
  }
  const response = await client.open({
    method: 'POST',
    path: '/api/capture',
    headers: lines,
    lines: generate(),
  })
  let captured = 0
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    if (chunk.includes('"problem"'))
      throw new Error(`a line was not stored: ${chunk.slice(0, 500)}`)
    captured += chunk.split('\n').length - 1
  }
  return captured
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk
  return text
}

function sampleMemory(server: ServerProcess): { stop: () => number[] } {
  const samples = [server.memoryBytes()]
  const timer = setInterval(() => samples.push(server.memoryBytes()), sampleMs)
  return {
    stop: () => {
      clearInterval(timer)
      return samples
    },
  }
}
