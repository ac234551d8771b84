import { parseValue } from './parse-value.ts'
import { nodeAt } from '../check/schema-node.ts'
import { configNode } from './json-schema.ts'
import { emptyTree, isForbidden, layerOf, over, type Layer, type Problem } from './layer.ts'

/** What a command line can say: the store, and any other key as `key=value`. */
export interface Flags {
  store?: string
  set?: readonly string[]
}

export function fromFlags({ store, set = [] }: Flags): { layer: Layer; problems: Problem[] } {
  let layer: Layer = { value: emptyTree(), origins: new Map() }
  const problems: Problem[] = []
  for (const assignment of set) {
    const [, key = '', text = ''] = /^([^=]*)=(.*)$/s.exec(assignment) ?? []
    const [first = '', ...rest] = key.split('.')
    if ([first, ...rest].some((name) => name === '' || isForbidden(name)))
      problems.push({
        key: key.slice(0, 100),
        from: '--set',
        text: 'is not of the form key=value, as in --set maxRetries=5',
      })
    else {
      const path = [first, ...rest] as const
      layer = over(layer, layerOf(path, parseValue(text, nodeAt(path, configNode)), `--set ${key}`))
    }
  }
  if (store !== undefined) layer = over(layer, layerOf(['store'], store, '--store'))
  return { layer, problems }
}
