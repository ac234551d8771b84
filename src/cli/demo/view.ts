import type { Clock } from '../../clock/clock.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import type { Store } from '../../store.ts'
import { openScreen, type Screen } from '../screen.ts'
import { toEventLine, formatEventLine, type EventLine } from './events.ts'
import { renderFrame } from './frame.ts'
import type { Traffic } from './traffic.ts'
import { terminal } from '../terminal.ts'

/** The output of the demo. */
export interface View {
  /** Restores the terminal. */
  close(): Promise<void>
}

export interface ViewOptions {
  url: string
  store: Store
  dlq: DeadLetterQueue
  clock: Clock
  traffic: Traffic
  /** Called for the keys that end the demo; with true for Ctrl-C. */
  end: (interrupted: boolean) => void
}

/** A line for every event, for logs and pipes. */
export function openLogView({ dlq, clock }: ViewOptions): View {
  const stop = dlq.on('*', (event) => {
    const line = toEventLine(event, clock.now())
    if (line) terminal.stdout.write(`${formatEventLine(line)}\n`)
  })
  return { close: async () => stop() }
}

/** A live table, for terminals. */
export function openLiveView(options: ViewOptions): View {
  return new LiveView(options)
}

const redrawMs = 250
const maxEvents = 200

class LiveView implements View {
  readonly #options: ViewOptions
  readonly #screen: Screen
  readonly #events: EventLine[] = []
  readonly #startedMs: number
  readonly #stop: () => void
  #cancel: () => void = () => {}
  #drawing: Promise<void> = Promise.resolve()
  #open = true
  readonly #onKey = (key: Buffer): void => this.#press(key.toString())
  readonly #onResize = (): void => this.#redraw()

  constructor(options: ViewOptions) {
    this.#options = options
    this.#startedMs = options.clock.now()
    this.#screen = openScreen(terminal.stdout)
    this.#stop = options.dlq.on('*', (event) => {
      const line = toEventLine(event, options.clock.now())
      if (line) this.#events.push(line)
      if (this.#events.length > maxEvents) this.#events.shift()
    })
    if (terminal.stdin.isTTY) terminal.stdin.setRawMode(true).on('data', this.#onKey)
    terminal.stdout.on('resize', this.#onResize)
    this.#redraw()
  }

  /**
   * Draws, and schedules the next draw: never two at once, at most four per second.
   */
  #redraw(): void {
    this.#cancel()
    this.#drawing = this.#drawing
      .then(() => this.#draw())
      .finally(() => {
        this.#cancel()
        if (this.#open) this.#cancel = this.#options.clock.timer(redrawMs, () => this.#redraw())
      })
  }

  async #draw(): Promise<void> {
    if (!this.#open) return
    const { url, store, clock, traffic } = this.#options
    try {
      const rows = terminal.stdout.rows
      const lines = await renderFrame({
        url,
        store,
        clock,
        startedMs: this.#startedMs,
        paused: traffic.paused,
        events: this.#events,
        rows,
      })
      this.#screen.draw(lines)
    } catch {
      // The store is unavailable, which is reported as an event. The last frame stays.
    }
  }

  #press(key: string): void {
    const { traffic, end } = this.#options
    if (key === 'q' || key === '\u0003' || key === '\u0004') end(key === '\u0003')
    else if (key === 'p') traffic.paused = !traffic.paused
    else if (key === 'r') void this.#retrySettled().catch(() => {})
  }

  async #retrySettled(): Promise<void> {
    const { dlq } = this.#options
    const { items } = await dlq.find({ state: ['parked', 'exhausted'], limit: 100 })
    await Promise.allSettled(items.map((letter) => dlq.retry(letter.id, 'you')))
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    this.#stop()
    this.#cancel()
    await this.#drawing
    terminal.stdout.off('resize', this.#onResize)
    if (terminal.stdin.isTTY) terminal.stdin.setRawMode(false).off('data', this.#onKey).pause()
    this.#screen.close()
  }
}
