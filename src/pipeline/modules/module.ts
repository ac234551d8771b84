import type { Document, PipeStream } from '../stream.ts'

/** What a module gets to work on. */
export interface ModuleCall {
  /** Not to be changed: others read it too. */
  readonly stream: PipeStream
  /** The document, fetched if it travels by reference. Undefined: the stream has none. */
  readonly document: Document | undefined
  readonly node: string
  /** 1 for the first call. */
  readonly attempt: number
  /** The time is over, or the record is somebody else's by now. */
  readonly signal: AbortSignal
}

/** Nothing, or success without a document: it goes on as it came. */
export type ModuleResult =
  | undefined
  | { success: true; document?: DocumentInput }
  /** The module could not do its work on this document, and calling it again would not help. */
  | { success: false; error: string }

export interface DocumentInput {
  id?: string
  body: Uint8Array
  contentType?: string
  attributes?: Record<string, string>
}

/** What a node calls for each document. A rejection is a failure of the module, not of the document. */
export type Module = (call: ModuleCall) => Promise<ModuleResult | void> | ModuleResult | void
