import { isLetterId } from '../../letter/letter-id.ts'

/** The position before all letters. */
export const firstPosition = '0'

/** The time of capture that an id contains: ids are UUIDs of version 7. */
export function msOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** An id that sorts before all ids of this time. */
export function idAt(ms: number): string {
  const digits = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`
}

/** Whether a string from outside can be a position. A letter with this id need not exist. */
export function isPosition(text: string): boolean {
  return text === firstPosition || isLetterId(text)
}
