// Small changes of the code that a test should notice.
import { parseAst } from 'vitest/node'

export interface Mutation {
  /** Where the changed text begins. */
  readonly start: number
  readonly end: number
  readonly before: string
  readonly after: string
  readonly line: number
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const operators: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '&&': '||',
  '||': '&&',
  '??': '&&',
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** All mutations of a module, in the order of the text. Types and imports stay as they are. */
export function mutationsOf(code: string): Mutation[] {
  const found: Mutation[] = []
  const add = (start: number, end: number, after: string): void => {
    const before = code.slice(start, end)
    const line = code.slice(0, start).split('\n').length
    if (before !== after) found.push({ start, end, before, after, line })
  }
  const visit = (node: Node): void => {
    if (node.type.startsWith('TS') && !/^TS(As|NonNull|Satisfies)/.test(node.type)) return
    if (/^(Import|ExportAll)/.test(node.type)) return
    mutate(node, code, add)
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child)
  }
  visit(parseAst(code, { lang: 'ts' }) as unknown as Node)
  return found.sort((a, b) => a.start - b.start)
}

type Add = (start: number, end: number, after: string) => void

function mutate(node: Node, code: string, add: Add): void {
  const child = (key: string): Node => node[key] as Node
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const { operator } = node as unknown as { operator: string }
      const after = operators[operator]
      // Between strings, + joins.
      const isText = /['"`]/.test(code.slice(node.start, node.end)) && operator === '+'
      if (after === undefined || isText) return
      const from = child('left').end
      const at = code.indexOf(operator, from)
      return add(at, at + operator.length, after)
    }
    case 'Literal':
      if (typeof node['value'] === 'boolean') add(node.start, node.end, String(!node['value']))
      if (typeof node['value'] === 'number')
        add(node.start, node.end, String(node['value'] === 0 ? 1 : node['value'] + 1))
      return
    case 'UnaryExpression':
      if (node['operator'] === '!') add(node.start, node.start + 1, '')
      return
    case 'IfStatement': {
      const test = child('test')
      return add(test.start, test.end, `!(${code.slice(test.start, test.end)})`)
    }
    case 'AwaitExpression':
      return add(node.start, child('argument').start, 'void ')
    case 'ExpressionStatement':
      // The statement is left out.
      return add(node.start, node.end, ';')
  }
}

export const applyTo = (code: string, { start, end, after }: Mutation): string =>
  code.slice(0, start) + after + code.slice(end)
