import type { Document, DocumentRef } from '../stream.ts'

/** Keeps documents that are too large to travel along. */
export interface DocumentStore {
  /**
   * Resolves once it is kept for good. The same document of the same owner again is the same reference; that of another owner is another
   * one, so that each can be removed without the other.
   */
  put(document: Document, owner?: string): Promise<DocumentRef>
  /** Rejects with DOCUMENT_NOT_FOUND when it is not there, or is not what was put there. */
  get(ref: DocumentRef): Promise<Document>
  /** True: it was there. */
  remove(ref: Pick<DocumentRef, 'location'>): Promise<boolean>
}
