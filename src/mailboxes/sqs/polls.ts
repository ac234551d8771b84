import type { Message } from '@aws-sdk/client-sqs'
import type { Ask } from '../../mailbox.ts'

/** What one call of ReceiveMessage asks. Numbers are whole. */
export interface PollAsk {
  max: number
  visibilitySeconds: number
  waitSeconds: number
}

interface Poll extends PollAsk {
  /** Whoever waits for the answer. Undefined: they gave up. */
  deliver?: (answer: Promise<Message[]>) => void
}

/**
 * Long polls that outlive those who asked. Cutting one off could leave a message hidden that SQS had just put into the answer; so it goes
 * on, serves the next one who asks for the same, and what comes for nobody is given back.
 */
export class Polls {
  readonly #start: (ask: PollAsk) => Promise<Message[]>
  readonly #giveBack: (messages: Message[]) => void
  readonly #running = new Map<Poll, Promise<void>>()

  constructor(
    start: (ask: PollAsk) => Promise<Message[]>,
    giveBack: (messages: Message[]) => void,
  ) {
    this.#start = start
    this.#giveBack = giveBack
  }

  take(ask: PollAsk, signal: Ask['signal']): Promise<Message[]> {
    const poll = this.#left(ask) ?? this.#begin(ask)
    return new Promise((resolve) => {
      const leave = (): void => {
        delete poll.deliver
        resolve([])
      }
      poll.deliver = (answer) => {
        signal.removeEventListener('abort', leave)
        resolve(answer)
      }
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** Resolves once all that run have ended, and what they brought for nobody is on its way back. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  /** One that nobody waits for any more, and that would bring what is asked. Those who do not wait want an answer now. */
  #left({ max, visibilitySeconds, waitSeconds }: PollAsk): Poll | undefined {
    if (waitSeconds === 0) return undefined
    for (const poll of this.#running.keys())
      if (!poll.deliver && poll.max <= max && poll.visibilitySeconds === visibilitySeconds)
        return poll
    return undefined
  }

  #begin(ask: PollAsk): Poll {
    const poll: Poll = { ...ask }
    this.#running.set(poll, this.#run(poll))
    return poll
  }

  async #run(poll: Poll): Promise<void> {
    const answer = this.#start(poll)
    const messages = await answer.catch(() => [])
    this.#running.delete(poll)
    if (poll.deliver) poll.deliver(answer)
    else if (messages.length > 0) this.#giveBack(messages)
  }
}
