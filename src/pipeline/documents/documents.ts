import type { Document, DocumentRef } from '../stream.ts'

/** Stores documents that are too large for records. */
export interface DocumentStore {
  /**
   * Resolves once the document is stored durably. The same document of the same owner has the same
   * reference; that of another owner has another one, so that each can be removed separately.
   */
  put(document: Document, owner?: string): Promise<DocumentRef>
  /** Rejects with DOCUMENT_NOT_FOUND if the document does not exist, or has changed. */
  get(ref: DocumentRef): Promise<Document>
  /** Returns whether the document existed. */
  remove(ref: Pick<DocumentRef, 'location'>): Promise<boolean>
}
