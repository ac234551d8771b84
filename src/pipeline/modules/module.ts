import type { Document, PipeStream } from '../stream.ts'

/** The input of a module. */
export interface ModuleCall {
  /** Read-only: shared with other readers. */
  readonly stream: PipeStream
  /** The document, fetched if it travels by reference. Undefined if the stream has none. */
  readonly document: Document | undefined
  readonly node: string
  /** 1 for the first call. */
  readonly attempt: number
  /** Aborts at the time limit, or when the partition is revoked. */
  readonly signal: AbortSignal
}

/** Nothing, or success without a document: the document is unchanged. */
export type ModuleResult =
  | undefined
  | { success: true; document?: DocumentInput }
  /** The module cannot process this document, and a retry would not help. */
  | { success: false; error: string }

export interface DocumentInput {
  id?: string
  body: Uint8Array
  contentType?: string
  attributes?: Record<string, string>
}

/**
 * Called by a node for each document. A rejection is a failure of the module, not of the document.
 */
export type Module = (call: ModuleCall) => Promise<ModuleResult | void> | ModuleResult | void
