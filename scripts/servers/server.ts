// What one private server is: a row of the table in table.ts.
import type { Process } from './machine.ts'

/** What a server is given to start with. Its folder is empty, and exists. */
export interface Room {
  readonly folder: string
  readonly log: string
  readonly ports: readonly number[]
  /** The ports of the servers that this one stands in front of. */
  readonly portsOf: (name: string) => readonly number[]
}

export interface Server {
  readonly name: string
  /** The variable by which a person names another server to test on. */
  readonly variable: string
  /** The ports that it would like; when one is taken, the next free one is used. */
  readonly ports: readonly number[]
  /** Servers that must be ready before this one starts. */
  readonly after: readonly string[]
  /** Debian packages with its programs. */
  readonly packages: readonly string[]
  /** What the machine lacks, in words, or nothing. */
  readonly lacks: () => string | undefined
  /** What is to be fetched besides packages. */
  readonly fetch?: () => void
  readonly start: (room: Room) => Process[] | Promise<Process[]>
  /** The signal that stops it at once and in order. */
  readonly stopSignal: NodeJS.Signals
  /** Asks the server itself; an error counts as no. */
  readonly ready: (ports: readonly number[]) => Promise<boolean>
  /** What is done once it answers, such as joining nodes. */
  readonly settle?: (room: Room) => void | Promise<void>
  readonly seconds: number
  readonly url: (ports: readonly number[]) => string
}
