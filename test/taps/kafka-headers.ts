/** Encodes values as Java does. */
export function int(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

export function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}

const strings = (all: Record<string, string>): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(all).map(([name, text]) => [name, Buffer.from(text)]))

/** The headers that the recoverer of Spring Kafka adds to a dead record. */
export function springHeaders(topic = 'orders', partition = 1): Record<string, Buffer> {
  return {
    ...strings({
      'content-type': 'application/json',
      trace: 'abc',
      'kafka_dlt-original-topic': topic,
      'kafka_dlt-original-timestamp-type': 'CreateTime',
      'kafka_dlt-original-consumer-group': 'billing',
      'kafka_dlt-exception-fqcn':
        'org.springframework.kafka.listener.ListenerExecutionFailedException',
      'kafka_dlt-exception-cause-fqcn': 'java.lang.IllegalStateException',
      'kafka_dlt-exception-message': 'no such customer',
      'kafka_dlt-exception-stacktrace': 'IllegalStateException\n\tat com.acme.Billing.charge',
    }),
    'kafka_dlt-original-partition': int(partition),
    'kafka_dlt-original-offset': long(5_000_000_000n),
    'kafka_dlt-original-timestamp': long(1_767_225_600_000n),
    kafka_deliveryAttempt: int(3),
  }
}

/** A stack trace of `@RetryableTopic` of Spring Kafka 4.0.3, shortened. */
export const springTrace = `org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed
\tat org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer.decorateException(KafkaMessageListenerContainer.java:3018)
\tat java.base/java.lang.Thread.run(Thread.java:840)
\tSuppressed: org.springframework.kafka.listener.ListenerExecutionFailedException: Restored Stack Trace
\t\tat org.springframework.kafka.listener.adapter.MessagingMessageListenerAdapter.invoke(MessagingMessageListenerAdapter.java:425)
Caused by: org.springframework.kafka.listener.TimestampedException: Exception thrown at 2026-11-17T15:48:28.630954976Z
\tat org.springframework.kafka.listener.adapter.KafkaBackoffAwareMessageListenerAdapter.onMessage(KafkaBackoffAwareMessageListenerAdapter.java:100)
\t... 10 more
Caused by: java.lang.IllegalStateException: the bank did not answer
\tat com.acme.Billing.charge(Billing.java:132)
\t... 17 more
Caused by: java.net.SocketTimeoutException: Read timed out
\t... 27 more
`

/**
 * The headers that `@RetryableTopic` of Spring Kafka 4.0.3 adds to a record after two attempts, in
 * its order: `kafka_` instead of `kafka_dlt-` except for the group; `retry_topic-` once for each
 * time that the record was forwarded.
 */
export function retryableHeaders(topic = 'orders', partition = 1): [string, Buffer | null][] {
  const shortTime = (ms: number): Buffer => Buffer.from(ms.toString(16).padStart(12, '0'), 'hex')
  return [
    ['kafka_original-topic', Buffer.from(topic)],
    ['kafka_original-partition', int(partition)],
    ['kafka_original-offset', long(5_000_000_000n)],
    ['kafka_original-timestamp', long(1_767_225_600_000n)],
    ['kafka_original-timestamp-type', Buffer.from('CreateTime')],
    ['kafka_dlt-original-consumer-group', Buffer.from('billing')],
    ['retry_topic-original-timestamp', shortTime(1_767_225_600_000)],
    ['retry_topic-attempts', int(2)],
    ['retry_topic-backoff-timestamp', shortTime(1_767_225_600_100)],
    [
      'kafka_exception-fqcn',
      Buffer.from('org.springframework.kafka.listener.ListenerExecutionFailedException'),
    ],
    ['kafka_exception-cause-fqcn', Buffer.from('java.lang.IllegalStateException')],
    ['kafka_exception-message', Buffer.from('Listener failed; the bank did not answer')],
    ['kafka_exception-stacktrace', Buffer.from(springTrace)],
    ['retry_topic-original-timestamp', shortTime(1_767_225_600_000)],
    ['retry_topic-attempts', int(3)],
    ['retry_topic-backoff-timestamp', shortTime(1_767_225_600_200)],
  ]
}

/** The headers that Kafka Connect adds to a record that a sink rejected. */
export function connectHeaders(topic = 'payments', partition = 4): Record<string, Buffer> {
  return strings({
    '__connect.errors.topic': topic,
    '__connect.errors.partition': String(partition),
    '__connect.errors.offset': '99',
    '__connect.errors.connector.name': 'to-s3',
    '__connect.errors.task.id': '0',
    '__connect.errors.stage': 'VALUE_CONVERTER',
    '__connect.errors.class.name': 'org.apache.kafka.connect.json.JsonConverter',
    '__connect.errors.exception.class.name': 'org.apache.kafka.connect.errors.DataException',
    '__connect.errors.exception.message': 'cannot convert',
    '__connect.errors.exception.stacktrace': 'DataException\n\tat org.apache.kafka.connect',
  })
}
