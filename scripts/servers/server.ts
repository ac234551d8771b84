// The definition of a private server: a row of the table in table.ts.
import type { Process } from './machine.ts'

/** The resources of a starting server. Its folder exists and is empty. */
export interface Resources {
  readonly folder: string
  readonly log: string
  readonly ports: readonly number[]
  /** The ports of the servers that this one depends on. */
  readonly portsOf: (name: string) => readonly number[]
}

export interface Server {
  readonly name: string
  /** The environment variable with the URL of another server to test on. */
  readonly variable: string
  /** The preferred ports; if one is taken, the next free one is used. */
  readonly ports: readonly number[]
  /** Servers that must be ready before this one starts. */
  readonly after: readonly string[]
  /** Debian packages with its programs. */
  readonly packages: readonly string[]
  /** What the machine lacks; undefined if nothing. */
  readonly lacks: () => string | undefined
  /** Fetches files in addition to packages. */
  readonly fetch?: () => void
  readonly start: (resources: Resources) => Process[] | Promise<Process[]>
  /** The signal for a fast, clean shutdown. */
  readonly stopSignal: NodeJS.Signals
  /** Checks the server; an error counts as not ready. */
  readonly ready: (ports: readonly number[]) => Promise<boolean>
  /** Runs once the server is ready, for example to join nodes. */
  readonly settle?: (resources: Resources) => void | Promise<void>
  readonly seconds: number
  readonly url: (ports: readonly number[]) => string
}
