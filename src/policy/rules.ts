import type { ErrorCategory } from '../letter/letter.ts'
import { judgement, type Judgement } from './judgement.ts'

type Row = [
  category: ErrorCategory,
  keys: string,
  severity?: Judgement['severity'],
  recoverability?: Judgement['recoverability'],
]

function table(rows: readonly Row[]): ReadonlyMap<string, Judgement> {
  const entries = rows.flatMap(([category, keys, severity, recoverability]) =>
    keys
      .trim()
      .split(/\s+/)
      .map((key) => [key, judgement(category, severity, recoverability)] as const),
  )
  return new Map(entries)
}

/** Error codes of Node, undici, databases, gRPC and TLS: the most reliable criterion. */
export const codes = table([
  // System calls
  [
    'network',
    `ECONNREFUSED ECONNRESET ECONNABORTED ENOTFOUND EPIPE EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN
    ENETRESET ENOTCONN ESHUTDOWN EADDRNOTAVAIL EPROTO EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ENODATA
    EREFUSED ESERVFAIL ECONNCLOSED ERR_NETWORK ERR_SOCKET_CLOSED ERR_STREAM_PREMATURE_CLOSE
    ERR_SSL_WRONG_VERSION_NUMBER NR_CLOSED CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED HPE`,
  ],
  [
    'timeout',
    'ETIMEDOUT ESOCKETTIMEDOUT ETIMEOUT ERR_SOCKET_CONNECTION_TIMEOUT ERR_TLS_HANDSHAKE_TIMEOUT',
  ],
  ['timeout', 'ABORT_ERR UND_ERR_ABORTED CONNECT_TIMEOUT'],
  // A process that was killed.
  ['transient', 'SIGTERM SIGKILL SIGINT SIGHUP'],
  ['transient', 'EAGAIN EWOULDBLOCK EINTR EBUSY ETXTBSY EDEADLK EADDRINUSE ESTALE ERR_CANCELED'],
  ['resource', 'ENOSPC ENOMEM EDQUOT EIO', 'critical', 'recoverable'],
  ['resource', 'EMFILE ENFILE ENOBUFS ERR_WORKER_OUT_OF_MEMORY'],
  ['permission', 'EACCES EPERM EROFS'],
  [
    'validation',
    'E2BIG ENAMETOOLONG EINVAL EILSEQ ERR_INVALID_URL ERR_INVALID_CHAR EFBIG Z_DATA_ERROR',
  ],
  ['permanent', 'ENOENT EEXIST EISDIR ENOTDIR ENOTEMPTY EXDEV ELOOP', 'medium', 'recoverable'],
  ['permanent', 'ENOSYS ENOTSUP EOPNOTSUPP EBADF'],
  [
    'permanent',
    'MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND ERR_PACKAGE_PATH_NOT_EXPORTED',
    'high',
    'recoverable',
  ],
  [
    'permanent',
    'ERR_ASSERTION ERR_INVALID_ARG_TYPE ERR_INVALID_ARG_VALUE ERR_INVALID_STATE ERR_OUT_OF_RANGE ERR_MISSING_ARGS',
    'high',
    'recoverable',
  ],

  // Certificates: waiting does not renew them.
  [
    'permanent',
    `CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED CERT_UNTRUSTED CERT_REJECTED
    DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE
    UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH`,
    'high',
    'recoverable',
  ],

  // HTTP clients
  ['timeout', 'UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT'],
  ['network', 'UND_ERR_SOCKET UND_ERR_CLOSED UND_ERR_DESTROYED UND_ERR_INFO'],
  [
    'permanent',
    'UND_ERR_INVALID_ARG ERR_FR_TOO_MANY_REDIRECTS ERR_TOO_MANY_REDIRECTS',
    'high',
    'recoverable',
  ],
  ['dependency', 'ERR_BODY_PARSE_FAILURE EOPENBREAKER'],
  ['permission', 'EAUTH', 'high', 'recoverable'],

  // Error names in response bodies, for example of language models and GitHub
  ['rate-limit', 'rate_limit_error rate_limit_exceeded RATE_LIMITED RATE_LIMIT'],
  ['dependency', 'overloaded_error api_error server_error'],
  ['timeout', 'timeout_error'],
  ['resource', 'insufficient_quota billing_error', 'high', 'recoverable'],
  ['permission', 'invalid_api_key authentication_error', 'high', 'recoverable'],
  ['permission', 'permission_error FORBIDDEN INSUFFICIENT_SCOPES'],
  ['validation', 'context_length_exceeded content_policy_violation request_too_large'],
  ['permanent', 'model_not_found not_found_error', 'medium', 'recoverable'],

  // gRPC; RESOURCE_EXHAUSTED is what a gateway turns into 429.
  ['transient', 'CANCELLED ABORTED'],
  ['timeout', 'DEADLINE_EXCEEDED'],
  ['rate-limit', 'RESOURCE_EXHAUSTED'],
  ['dependency', 'UNAVAILABLE INTERNAL'],
  ['validation', 'INVALID_ARGUMENT OUT_OF_RANGE'],
  ['permission', 'PERMISSION_DENIED'],
  ['permission', 'UNAUTHENTICATED', 'high', 'recoverable'],
  ['permanent', 'NOT_FOUND ALREADY_EXISTS FAILED_PRECONDITION', 'medium', 'recoverable'],
  ['permanent', 'UNIMPLEMENTED DATA_LOSS', 'high'],

  // Postgres states that are more specific than their class
  ['timeout', '57014 25P03 25P04'],
  ['transient', '55P03 55006 25006'],
  ['permission', '42501'],
  ['permanent', 'XX001 XX002', 'critical'],

  // SQLite, MySQL, MongoDB, Prisma
  ['transient', 'SQLITE_BUSY SQLITE_LOCKED ER_LOCK_DEADLOCK ER_LOCK_WAIT_TIMEOUT P2034'],
  ['resource', 'SQLITE_FULL SQLITE_NOMEM SQLITE_IOERR', 'critical', 'recoverable'],
  ['resource', 'SQLITE_CANTOPEN ER_CON_COUNT_ERROR ER_TOO_MANY_USER_CONNECTIONS'],
  ['permanent', 'SQLITE_CORRUPT SQLITE_NOTADB', 'critical'],
  [
    'permanent',
    'ER_PARSE_ERROR ER_NO_SUCH_TABLE ER_BAD_FIELD_ERROR P2021 P2022 P2025',
    'medium',
    'recoverable',
  ],
  ['validation', 'SQLITE_CONSTRAINT SQLITE_TOOBIG SQLITE_MISMATCH SQLITE_RANGE 11000'],
  [
    'validation',
    'ER_DUP_ENTRY ER_DATA_TOO_LONG ER_BAD_NULL_ERROR ER_NO_REFERENCED_ROW_2 P2000 P2002 P2003',
  ],
  ['permission', 'SQLITE_READONLY SQLITE_PERM SQLITE_AUTH ER_DBACCESS_DENIED_ERROR P1010'],
  ['permission', 'ER_ACCESS_DENIED_ERROR P1000', 'high', 'recoverable'],
  ['network', 'PROTOCOL_CONNECTION_LOST ER_SERVER_SHUTDOWN P1001 P1017'],
  ['timeout', 'ER_QUERY_TIMEOUT PROTOCOL_SEQUENCE_TIMEOUT P1002 P1008 P2024'],

  // Redis: the first word of a reply
  ['transient', 'LOADING BUSY TRYAGAIN CLUSTERDOWN MASTERDOWN NOREPLICAS READONLY MOVED ASK'],
  ['resource', 'OOM MISCONF', 'high', 'recoverable'],
  ['permission', 'NOAUTH WRONGPASS', 'high', 'recoverable'],
  ['permission', 'NOPERM'],
  ['validation', 'WRONGTYPE'],
  ['permanent', 'CROSSSLOT', 'high', 'recoverable'],

  // Kafka: what is stale, moving or being elected settles by itself.
  [
    'transient',
    `LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION
    COORDINATOR_NOT_AVAILABLE GROUP_COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR NOT_COORDINATOR_FOR_GROUP
    COORDINATOR_LOAD_IN_PROGRESS GROUP_LOAD_IN_PROGRESS NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND
    REBALANCE_IN_PROGRESS ILLEGAL_GENERATION UNKNOWN_MEMBER_ID CORRUPT_MESSAGE`,
  ],
  ['timeout', 'REQUEST_TIMED_OUT'],
  ['dependency', 'BROKER_NOT_AVAILABLE UNKNOWN_SERVER_ERROR'],
  [
    'permission',
    'TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED',
  ],
  ['permission', 'SASL_AUTHENTICATION_FAILED', 'high', 'recoverable'],
  [
    'validation',
    'MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD INVALID_TOPIC_EXCEPTION INVALID_REQUEST',
  ],
  ['permanent', 'OFFSET_OUT_OF_RANGE TOPIC_ALREADY_EXISTS', 'medium', 'recoverable'],
  ['permanent', 'UNSUPPORTED_VERSION', 'high', 'recoverable'],
])

/** Classes whose names do not reveal the category. */
export const names = table([
  [
    'permission',
    `CredentialsProviderError SignatureDoesNotMatch InvalidAccessKeyId UnrecognizedClientException
    RequestTimeTooSkewed InvalidClientTokenId TokenExpiredError`,
    'high',
    'recoverable',
  ],
  ['permanent', 'MongoParseError TSError', 'high', 'recoverable'],
  ['permanent', 'UnrecoverableError NonRetriableError NonRetryableError'],

  // Java: JDK, JDBC, Jackson, Spring, Hibernate, Kafka. Others are classified by words in their
  // names.
  [
    'network',
    `ConnectException NoRouteToHostException UnknownHostException PortUnreachableException SocketException
    ClosedChannelException AsynchronousCloseException UnresolvedAddressException HttpHostConnectException
    NoHttpResponseException SQLNonTransientConnectionException CommunicationsException DisconnectException`,
  ],
  ['timeout', 'InterruptedIOException'],
  [
    'transient',
    `SQLTransientException SQLTransientConnectionException SQLTransactionRollbackException
    SQLRecoverableException CannotAcquireLockException CannotSerializeTransactionException
    PessimisticLockException OptimisticLockException OptimisticLockingFailureException
    ObjectOptimisticLockingFailureException StaleObjectStateException LockAcquisitionException
    InterruptedException RetriableException WakeupException NotLeaderOrFollowerException
    LeaderNotAvailableException`,
  ],
  ['resource', 'OutOfMemoryError', 'critical', 'recoverable'],
  ['resource', 'RejectedExecutionException TaskRejectedException'],
  ['permission', 'AccessDeniedException AccessControlException SecurityException'],
  ['permission', 'FailedLoginException LoginException', 'high', 'recoverable'],
  [
    'validation',
    `JsonParseException JsonMappingException JsonProcessingException JsonEOFException StreamReadException
    DatabindException MismatchedInputException UnrecognizedPropertyException ValueInstantiationException
    JsonSyntaxException SerializationException DeserializationException RecordDeserializationException
    DataException SchemaParseException AvroTypeException NumberFormatException DateTimeParseException
    ParseException MalformedInputException MalformedURLException URISyntaxException
    DataIntegrityViolationException DuplicateKeyException SQLIntegrityConstraintViolationException
    SQLDataException ConstraintViolationException MethodArgumentNotValidException
    HttpMessageNotReadableException RecordTooLargeException`,
  ],
  [
    'permanent',
    `FileNotFoundException NoSuchFileException SQLSyntaxErrorException BadSqlGrammarException
    EmptyResultDataAccessException`,
    'medium',
    'recoverable',
  ],
  [
    'permanent',
    `ClassNotFoundException NoClassDefFoundError NoSuchMethodError NoSuchFieldError StackOverflowError
    NoSuchBeanDefinitionException CertificateExpiredException CertPathValidatorException`,
    'high',
    'recoverable',
  ],
])

/** Codes with a suffix: SQLITE_BUSY_SNAPSHOT is a SQLITE_BUSY. HPE is the HTTP parser. */
export const codeStem = /^(?:SQLITE_[A-Z]+|HPE)(?=_)/

/** Classes that clients use for every error of a server. */
export const vagueNames: ReadonlySet<string> = new Set([
  'MongoServerError',
  'StripeInvalidRequestError',
])

/**
 * Vague Java classes that share their simple name with a specific one, by the start of the stack.
 */
export const vagueTypes: ReadonlyMap<string, string> = new Map([
  // The base class of Kafka Connect. The class in `java.net` means a refused connection.
  ['ConnectException', 'org.apache.kafka.connect.errors.ConnectException'],
])

/** SQLSTATE by its class, the first two of five characters. */
export const sqlStateClasses = table([
  ['network', '08'],
  ['transient', '40'],
  ['resource', '53'],
  ['dependency', '57 58 XX'],
  ['validation', '21 22 23'],
  ['permission', '28', 'high', 'recoverable'],
  ['permanent', '3D 3F 42', 'medium', 'recoverable'],
  ['permanent', '0A 26 34 54'],
])

export const grpcNames =
  `OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS
  PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL
  UNAVAILABLE DATA_LOSS UNAUTHENTICATED`.split(/\s+/)

/** HTTP statuses. Other 4xx count as 400, other 5xx as 500. */
export const statuses = table([
  ['timeout', '408 499 504 522 524'],
  ['transient', '421 423 425'],
  ['rate-limit', '429 509'],
  ['dependency', '424 500'],
  ['resource', '507'],
  ['permission', '403 451'],
  ['permission', '401 407 511', 'high', 'recoverable'],
  ['validation', '400'],
  ['permanent', '404 409 410 412 428', 'medium', 'recoverable'],
  ['permanent', '402 405 406 417 426 501 505 506 508', 'medium', 'recoverable'],
])

/**
 * Vague classes, used only without a code or status. Waiting does not fix a bug in a program, but
 * with a fixed version the same letter succeeds.
 */
export const weakNames = table([
  ['timeout', 'AbortError'],
  [
    'permanent',
    'TypeError ReferenceError RangeError EvalError URIError AssertionError DataCloneError',
    'high',
    'recoverable',
  ],
  // The same in Java
  [
    'permanent',
    `NullPointerException ClassCastException IndexOutOfBoundsException ArrayIndexOutOfBoundsException
    StringIndexOutOfBoundsException ArithmeticException NoSuchElementException`,
    'high',
    'recoverable',
  ],
  ['validation', 'IllegalArgumentException'],
])

/** Specific messages of vague classes: errors of `fetch` without a cause, and a full heap. */
export const knownMessages: ReadonlyMap<string, Judgement> = new Map([
  ['fetch failed', judgement('network')],
  ['Failed to fetch', judgement('network')],
  ['Load failed', judgement('network')],
  ['terminated', judgement('network')],
  ['NetworkError when attempting to fetch resource.', judgement('network')],
  ['Array buffer allocation failed', judgement('resource')],
])
