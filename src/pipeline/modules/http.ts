import { RedriveError } from '../../errors.ts'
import {
  contentTypeOf,
  plain,
  createPoster,
  toHttpError,
  traceparentOf,
  urlProblem,
  type Answer,
} from '../../backends/http/post.ts'
import type { Module, ModuleCall, ModuleResult } from './module.ts'

export interface HttpModuleOptions {
  /**
   * It comes from the configuration only; no stream can change it. Modules are mostly in private
   * networks, so private addresses are allowed.
   */
  url: string
  /** Further headers, such as authorization. */
  headers?: Readonly<Record<string, string>>
  /** A larger answer is a failure. Default: 16 MiB. */
  maxBytes?: number
}

const maxErrorLength = 2000

/**
 * A module behind HTTP: the body of the document is posted unchanged. A 2xx has the new document as
 * its body, or none: then it is unchanged. A 422 is a logical failure, with its reason as text or
 * as JSON `{ "error": … }`. Everything else rejects, with the status. Throws INVALID_CONFIG for an
 * invalid URL.
 */
export function httpModule({
  url,
  headers = {},
  maxBytes = 16 * 1024 ** 2,
}: HttpModuleOptions): Module {
  const problem = urlProblem(url, true)
  if (problem !== undefined) throw new RedriveError('INVALID_CONFIG', `module.http ${problem}`)
  const target = new URL(url)
  const post = createPoster(target, true)
  return async (call) => {
    const { document, signal } = call
    signal.throwIfAborted()
    const body = document?.body ?? new Uint8Array()
    try {
      const sent = { ...headers, ...headersOf(call, body.byteLength) }
      return resultOf(await post({ headers: sent, body, signal, maxBytes }), call, target.host)
    } catch (error) {
      // The reason of the abort says more than the abort itself.
      throw signal.aborted ? signal.reason : error
    }
  }
}

function headersOf(
  { stream, document, node, attempt }: ModuleCall,
  length: number,
): Record<string, string> {
  return {
    'content-type': contentTypeOf(document?.contentType ?? ''),
    'content-length': String(length),
    'redrive-stream-id': plain(stream.streamId),
    'redrive-node': plain(node),
    'redrive-attempt': String(attempt),
    ...traceparentOf(stream.metadata?.traceId),
  }
}

function resultOf(answer: Answer, { document }: ModuleCall, host: string): ModuleResult {
  const { status, headers, body, whole } = answer
  if (status === 422) return { success: false, error: errorIn(body.toString()) }
  if (status < 200 || status > 299) throw toHttpError(answer, host)
  if (!whole)
    throw new RedriveError('TOO_LARGE', `${host} answered with a document that is too large`)
  // The encoding was not requested, and the next reader of the document would not know it.
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity')
    throw new RedriveError('UNDECODABLE', `${host} answered with content-encoding ${encoding}`)
  if (body.byteLength === 0) return { success: true }
  const contentType = headers['content-type'] ?? document?.contentType ?? ''
  return {
    success: true,
    document: {
      id: document?.id ?? '',
      attributes: { ...document?.attributes },
      contentType,
      body,
    },
  }
}

function errorIn(text: string): string {
  const said = reasonIn(text) ?? text.trim()
  return said === '' ? 'the module answered 422' : said.slice(0, maxErrorLength).toWellFormed()
}

function reasonIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}
