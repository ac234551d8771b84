/** What a command uses of the process that runs it. Tests replace it, to run in one process. */
export type Terminal = Pick<
  NodeJS.Process,
  | 'argv'
  | 'env'
  | 'exit'
  | 'exitCode'
  | 'on'
  | 'once'
  | 'pid'
  | 'removeListener'
  | 'stderr'
  | 'stdin'
  | 'stdout'
  | 'versions'
>

/** The terminal of the command that runs. No other module of the CLI uses `process`. */
export let terminal: Terminal = process

export function useTerminal(other: Terminal): void {
  terminal = other
}
