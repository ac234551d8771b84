/** One throwable of a Java stack trace. */
export interface JavaThrowable {
  /** The class with its package: `java.net.SocketTimeoutException`. */
  type: string
  message: string
  /** The lines of this throwable, without those of its cause. */
  stack: string
}

/** No trace is read beyond this many characters. Java itself prints about 100 for each frame. */
const maxTrace = 256 * 1024
const maxThrown = 50
const maxMessage = 8 * 1024
const causedBy = 'Caused by: '
/** A class name, then its message. Bounded, so that it stays linear in what it reads. */
const header = /^([\p{L}_$][\p{L}\p{N}_$.]{0,299})(?:: |$)/u

/**
 * The throwables of a Java stack trace, outermost first, each followed by its cause. Empty when the
 * string is no Java trace. Suppressed exceptions are left out: they did not lead to the failure.
 */
export function readJavaTrace(trace: string): JavaThrowable[] {
  const start = trace.indexOf('\n\tat ')
  if (start < 0 || start > maxTrace) return []
  const thrown: JavaThrowable[] = []
  let inFrames = false
  let from = 0
  for (let at = 0; at < trace.length && at < maxTrace;) {
    const newline = trace.indexOf('\n', at)
    const end = newline < 0 ? trace.length : newline
    const line = trace.slice(at, trace[end - 1] === '\r' ? end - 1 : end)
    const begins = thrown.length === 0 || line.startsWith(causedBy)
    const throwable = begins ? parseThrowable(line) : undefined
    const last = thrown.at(-1)
    if (throwable) {
      if (last) last.stack = trace.slice(from, at).trimEnd()
      if (thrown.length === maxThrown) return thrown
      thrown.push(throwable)
      from = at + (line.startsWith(causedBy) ? causedBy.length : 0)
      inFrames = false
    } else if (!last) return []
    else if (line.startsWith('\t')) inFrames = true
    else if (!inFrames) last.message = `${last.message}\n${line}`.slice(0, maxMessage)
    at = end + 1
  }
  const last = thrown.at(-1)
  if (last) last.stack = trace.slice(from, maxTrace).trimEnd()
  return thrown
}

/** The class without its package and without the class around it, as people and rules know it. */
export function simpleName(type: string): string {
  return type.split(/[.$]/).findLast((part) => part !== '') ?? type
}

function parseThrowable(line: string): JavaThrowable | undefined {
  const text = line.startsWith(causedBy) ? line.slice(causedBy.length) : line
  const [whole, type] = header.exec(text) ?? []
  if (type === undefined) return undefined
  return { type, message: text.slice(whole!.length, whole!.length + maxMessage), stack: '' }
}
