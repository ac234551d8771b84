import { parseValue } from './parse-value.ts'
import { nodeAt } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { emptyTree, isForbidden, layerOf, mergeLayers, type Layer, type Problem } from './layer.ts'

/** Values from the command line: the store, and other keys as `key=value`. */
export interface Flags {
  store?: string
  set?: readonly string[]
}

export function fromFlags({ store, set = [] }: Flags): { layer: Layer; problems: Problem[] } {
  let layer: Layer = { value: emptyTree(), origins: new Map() }
  const problems: Problem[] = []
  for (const assignment of set) {
    const [, key = '', string = ''] = /^([^=]*)=(.*)$/s.exec(assignment) ?? []
    const [first = '', ...rest] = key.split('.')
    if ([first, ...rest].some((name) => name === '' || isForbidden(name)))
      problems.push({
        key: key.slice(0, 100),
        from: '--set',
        text: 'must have the form key=value, such as --set maxRetries=5',
      })
    else {
      const path = [first, ...rest] as const
      layer = mergeLayers(
        layer,
        layerOf(path, parseValue(string, nodeAt(path, configNode)), `--set ${key}`),
      )
    }
  }
  if (store !== undefined) layer = mergeLayers(layer, layerOf(['store'], store, '--store'))
  return { layer, problems }
}
