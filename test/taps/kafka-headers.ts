/** As Java writes them. */
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

const texts = (all: Record<string, string>): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(all).map(([name, text]) => [name, Buffer.from(text)]))

/** What Spring Kafka's recoverer puts on a record that a listener gave up on. */
export function springHeaders(topic = 'orders', partition = 1): Record<string, Buffer> {
  return {
    ...texts({
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

/** What Kafka Connect puts on a record that a sink could not take. */
export function connectHeaders(topic = 'payments', partition = 4): Record<string, Buffer> {
  return texts({
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
