import type { Page } from '../letter/query.ts'

/** Yields all pages. */
export async function* readPages<T>(
  read: (from: { cursor?: string }) => Promise<Page<T>>,
): AsyncGenerator<T[]> {
  for (let from: { cursor?: string } | undefined = {}; from;) {
    const { items, cursor }: Page<T> = await read(from)
    yield items
    from = cursor === undefined ? undefined : { cursor }
  }
}
