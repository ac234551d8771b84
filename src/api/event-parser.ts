/** An event of a stream of Server-Sent Events. */
export interface ParsedEvent {
  id?: string
  data: string
}

/** Reads Server-Sent Events. The name of an event is part of its data, and comments are skipped. */
export class EventParser {
  #rest = ''
  #id: string | undefined
  #data: string[] = []

  /** Adds text, and returns the events that are complete now. */
  push(text: string): ParsedEvent[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    return lines.flatMap((line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line))
  }

  #line(line: string): ParsedEvent[] {
    if (line === '') return this.#end()
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line)!
    if (field === 'data') this.#data.push(value!)
    if (field === 'id') this.#id = value!
    return []
  }

  #end(): ParsedEvent[] {
    const event = {
      data: this.#data.join('\n'),
      ...(this.#id === undefined ? {} : { id: this.#id }),
    }
    this.#data = []
    this.#id = undefined
    return event.data === '' ? [] : [event]
  }
}
