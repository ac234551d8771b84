import {
  ChangeMessageVisibilityBatchCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
  type BatchResultErrorEntry,
  type ChangeMessageVisibilityBatchRequestEntry,
  type DeleteMessageBatchRequestEntry,
  type Message,
  type QueueAttributeName,
  type SendMessageBatchRequestEntry,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs'
import type { Clock } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import type { Address } from './address.ts'
import type { PollAsk } from './line.ts'
import { hasMethods, refuseClient } from '../injected-client.ts'
import { toRedriveError } from './errors.ts'

/** How long anything may take that is not meant to wait, retries of the SDK included. */
const timeoutMs = 5000

/** Long polls each keep a connection. */
const maxSockets = 200

/** Entries of a batch that failed, by their ids. */
type Failed = Map<string, BatchResultErrorEntry>

/** The verbs of SQS that a mailbox needs, in bounded time and with errors of ours. */
export interface Wire {
  queueUrl(name: string): Promise<string>
  createQueue(
    name: string,
    attributes: Partial<Record<QueueAttributeName, string>>,
  ): Promise<string>
  attributes(
    queueUrl: string,
    names: QueueAttributeName[],
  ): Promise<Partial<Record<QueueAttributeName, string>>>
  send(queueUrl: string, entries: SendMessageBatchRequestEntry[]): Promise<Failed>
  receive(queueUrl: string, ask: PollAsk): Promise<Message[]>
  delete(queueUrl: string, entries: DeleteMessageBatchRequestEntry[]): Promise<Failed>
  change(queueUrl: string, entries: ChangeMessageVisibilityBatchRequestEntry[]): Promise<Failed>
  purge(queueUrl: string): Promise<void>
  /** The error that one entry of a batch failed with. */
  refused(failure: BatchResultErrorEntry): RedriveError
  /** Ends all polls. */
  cut(): void
  close(): void
}

export function wireTo(
  { endpoint, region }: Address,
  config: SQSClientConfig,
  queue: string,
  clock: Clock,
): Wire {
  const client = new SQSClient({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: timeoutMs,
      httpAgent: { maxSockets },
      httpsAgent: { maxSockets },
    },
    ...config,
  })
  return new OneWire(client, queue, clock)
}

/** Uses the client of the application, which destroys it. Rejects a client of another service. */
export function useClient(client: SQSClient, queue: string, clock: Clock): Wire {
  const service = (client as { config?: { serviceId?: unknown } } | null)?.config?.serviceId
  if (!hasMethods(client, 'send') || service !== 'SQS')
    refuseClient('client', 'an SQSClient of @aws-sdk/client-sqs', client)
  return new OneWire(client, queue, clock, true)
}

class OneWire implements Wire {
  readonly #client: SQSClient
  readonly #queue: string
  readonly #clock: Clock
  /** Whether the client belongs to the application. */
  readonly #isInjected: boolean
  readonly #polls = new Set<AbortController>()

  constructor(client: SQSClient, queue: string, clock: Clock, isInjected = false) {
    this.#isInjected = isInjected
    this.#client = client
    this.#queue = queue
    this.#clock = clock
  }

  async queueUrl(QueueName: string): Promise<string> {
    const command = new GetQueueUrlCommand({ QueueName })
    const { QueueUrl = '' } = await this.#ask((how) => this.#client.send(command, how))
    return QueueUrl
  }

  async createQueue(
    QueueName: string,
    Attributes: Partial<Record<QueueAttributeName, string>>,
  ): Promise<string> {
    const command = new CreateQueueCommand({ QueueName, Attributes })
    const { QueueUrl = '' } = await this.#ask((how) => this.#client.send(command, how))
    return QueueUrl
  }

  async attributes(
    QueueUrl: string,
    AttributeNames: QueueAttributeName[],
  ): Promise<Partial<Record<QueueAttributeName, string>>> {
    const command = new GetQueueAttributesCommand({ QueueUrl, AttributeNames })
    const { Attributes = {} } = await this.#ask((how) => this.#client.send(command, how))
    return Attributes
  }

  async send(QueueUrl: string, Entries: SendMessageBatchRequestEntry[]): Promise<Failed> {
    const command = new SendMessageBatchCommand({ QueueUrl, Entries })
    return failedIn(await this.#ask((how) => this.#client.send(command, how)))
  }

  async receive(
    QueueUrl: string,
    { max, visibilitySeconds, waitSeconds }: PollAsk,
  ): Promise<Message[]> {
    const command = new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: max,
      VisibilityTimeout: visibilitySeconds,
      WaitTimeSeconds: waitSeconds,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    })
    const waited = waitSeconds * 1000 + timeoutMs
    const { Messages = [] } = await this.#ask(
      (how) => this.#client.send(command, how),
      waited,
      this.#polls,
    )
    return Messages
  }

  async delete(QueueUrl: string, Entries: DeleteMessageBatchRequestEntry[]): Promise<Failed> {
    const command = new DeleteMessageBatchCommand({ QueueUrl, Entries })
    return failedIn(await this.#ask((how) => this.#client.send(command, how)))
  }

  async change(
    QueueUrl: string,
    Entries: ChangeMessageVisibilityBatchRequestEntry[],
  ): Promise<Failed> {
    const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries })
    return failedIn(await this.#ask((how) => this.#client.send(command, how)))
  }

  async purge(QueueUrl: string): Promise<void> {
    const command = new PurgeQueueCommand({ QueueUrl })
    await this.#ask((how) => this.#client.send(command, how))
  }

  refused({ Code = '', Message: message = '' }: BatchResultErrorEntry): RedriveError {
    return toRedriveError(Object.assign(new Error(message), { name: Code }), this.#queue)
  }

  cut(): void {
    for (const poll of this.#polls) poll.abort()
  }

  close(): void {
    if (!this.#isInjected) this.#client.destroy()
  }

  async #ask<T>(
    act: (how: { abortSignal: AbortSignal }) => Promise<T>,
    ms = timeoutMs,
    among?: Set<AbortController>,
  ): Promise<T> {
    const stop = new AbortController()
    const cancel = this.#clock.timer(ms, () => stop.abort())
    among?.add(stop)
    try {
      return await act({ abortSignal: stop.signal })
    } catch (error) {
      throw toRedriveError(error, this.#queue)
    } finally {
      cancel()
      among?.delete(stop)
    }
  }
}

function failedIn({ Failed = [] }: { Failed?: BatchResultErrorEntry[] | undefined }): Failed {
  return new Map(Failed.map((failure) => [failure.Id ?? '', failure]))
}
