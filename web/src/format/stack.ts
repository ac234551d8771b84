/** A line of a stack trace. Library frames are those of packages and of Node itself. */
interface Frame {
  text: string
  isLibrary: boolean
}

/** Consecutive frames of the same kind. */
export interface FrameBlock {
  isLibrary: boolean
  frames: Frame[]
}

const maxFrames = 10_000

/** The frames of a stack in blocks, without the message above them. */
export function parseStack(stack: string): FrameBlock[] {
  const blocks: FrameBlock[] = []
  for (const text of frameLines(stack)) {
    const frame = { text, isLibrary: isLibraryFrame(text) }
    const last = blocks.at(-1)
    if (last && last.isLibrary === frame.isLibrary) last.frames.push(frame)
    else blocks.push({ isLibrary: frame.isLibrary, frames: [frame] })
  }
  return blocks
}

function frameLines(stack: string): string[] {
  const lines = stack.split('\n').map((line) => line.trim())
  const first = lines.findIndex((line) => isFrame(line))
  return first === -1 ? [] : lines.slice(first, first + maxFrames).filter((line) => line !== '')
}

/** `at f (file:1:2)` of V8 and Java, `f@file:1:2` of others, `File "x", line 1` of Python. */
function isFrame(line: string): boolean {
  return /^at\s/.test(line) || /^\S*@\S+:\d+/.test(line) || /^File ".*", line \d+/.test(line)
}

function isLibraryFrame(line: string): boolean {
  return /[/\\]node_modules[/\\]|[(\s]node:|<anonymous>\)?$|site-packages|\bnative\b/.test(line)
}
