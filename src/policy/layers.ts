import type { Failure } from '../letter/letter.ts'

/** Maximum number of causes that are considered. */
const maxLayers = 16

/** A failure and its causes, nearest first. */
export function layersOf(failure: Failure): Failure[] {
  const layers = [failure]
  for (let index = 0; index < layers.length; index++)
    for (const cause of layers[index]!.causes) {
      if (layers.length === maxLayers) return layers
      layers.push(cause)
    }
  return layers
}

/** The HTTP status. Some clients set it as the code. */
export function statusOf({ status, code }: Failure): number | undefined {
  return status ?? (code !== undefined && /^[1-5]\d\d$/.test(code) ? Number(code) : undefined)
}
