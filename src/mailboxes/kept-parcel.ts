import type { Parcel } from '../mailbox.ts'

/** What is kept of a parcel beside its id and its bytes. */
export function aboutOf({ contentType, headers, replyTo }: Parcel): string {
  return JSON.stringify({ contentType, headers, replyTo })
}

export function parcelOf(id: string, about: string, bytes: Uint8Array): Parcel {
  return { id, bytes, ...(JSON.parse(about) as Omit<Parcel, 'id' | 'bytes'>) }
}
