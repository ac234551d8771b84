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
import { hasMethods } from '../../letter/reading.ts'
import { refuseClient } from '../injected-client.ts'
import type { PollRequest } from './poll-group.ts'
import { toRedriveError } from './errors.ts'

/** Time limit of every call that does not wait for messages, retries of the SDK included. */
const timeoutMs = 5000

/** Each long poll occupies a connection. */
const maxSockets = 200

/** Failed entries of a batch by their ids. */
type Failed = Map<string, BatchResultErrorEntry>

/** The calls of SQS that a mailbox needs, with time limits and translated errors. */
export class SqsConnection {
  readonly #client: SQSClient
  readonly #queue: string
  readonly #clock: Clock
  /** Whether the client belongs to the application. */
  readonly #isInjected: boolean
  readonly #polls = new Set<AbortController>()

  /** Creates a client for the address. */
  static open(
    { endpoint, region }: Address,
    config: SQSClientConfig,
    queue: string,
    clock: Clock,
  ): SqsConnection {
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
    return new SqsConnection(client, queue, clock)
  }

  /** Uses the client of the application, which destroys it. Rejects a client of another service. */
  static use(client: SQSClient, queue: string, clock: Clock): SqsConnection {
    const service = (client as { config?: { serviceId?: unknown } } | null)?.config?.serviceId
    if (!hasMethods(client, 'send') || service !== 'SQS')
      refuseClient('client', 'an SQSClient of @aws-sdk/client-sqs', client)
    return new SqsConnection(client, queue, clock, true)
  }

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
    { max, visibilitySeconds, waitSeconds }: PollRequest,
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

  /** The error of one failed entry of a batch. */
  toError({ Code = '', Message: message = '' }: BatchResultErrorEntry): RedriveError {
    return toRedriveError(Object.assign(new Error(message), { name: Code }), this.#queue)
  }

  /** Aborts all polls. */
  abortPolls(): void {
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
