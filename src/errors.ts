/**
 * All error codes: HTTP status, exit code, whether a retry can help, and the meaning.
 * `docs/reference/errors.md` is generated from this table.
 */
export const errorTable = {
  INVALID_INPUT: {
    status: 400,
    exit: 2,
    retry: false,
    means: 'An argument, query or file is invalid. The message names it.',
  },
  INVALID_CONFIG: {
    status: 500,
    exit: 2,
    retry: false,
    means:
      'An option or setting is unknown or out of bounds, or a server rejects the user, password or database of the URL. The message says what to correct.',
  },
  LETTER_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No letter has this id. It may have been removed.',
  },
  ILLEGAL_MOVE: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The state of the letter does not allow this action. The message names the states that do.',
  },
  GROUP_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No letter has this fingerprint, and nothing is known about such a group.',
  },
  ALERT_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No alert of this name is raised. It may have been cleared.',
  },
  TARGET_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'The configuration has no target of this name for notifications.',
  },
  ACTION_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No bulk action has this id. It may have been removed after its results expired.',
  },
  PLAN_EXPIRED: {
    status: 409,
    exit: 5,
    retry: false,
    means: 'The plan of a bulk action was not run in time. Nothing was done. Plan it again.',
  },
  APPROVAL_REQUIRED: {
    status: 403,
    exit: 5,
    retry: false,
    means:
      'The plan has more letters than one person may act on. Another person has to approve it.',
  },
  ID_CONFLICT: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'A letter with this id is already stored with another payload. The stored letter is unchanged.',
  },
  VERSION_CONFLICT: {
    status: 409,
    exit: 5,
    retry: true,
    means: 'The letter was changed concurrently. Read it again and repeat the action.',
  },
  KEY_REUSED: {
    status: 422,
    exit: 2,
    retry: false,
    means: 'Another request was sent with the same Idempotency-Key. Nothing was done.',
  },
  RESPONSE_NOT_KEPT: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The request with this Idempotency-Key has succeeded. Its response had a secret, which is shown once.',
  },
  KEY_IN_USE: {
    status: 409,
    exit: 5,
    retry: true,
    means:
      'A request with the same Idempotency-Key runs at this moment. Send it again for its response.',
  },
  LEASE_LOST: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The lease passed to another worker, or a person settled the letter, before the result arrived. Nothing was changed.',
  },
  NO_ROUTE: {
    status: 422,
    exit: 6,
    retry: false,
    means:
      'The letter cannot be replayed from here: its source has no address, or this process has no route to it. The message says what to configure.',
  },
  REPLAY_REFUSED: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The queue of the letter does not allow its replay: never, or not without an idempotency key (option replay), or not before its group is fixed (option requireFix). Nothing was published.',
  },
  QUEUE_FULL: {
    status: 429,
    exit: 7,
    retry: true,
    means:
      'maxItems is reached. Archive or remove letters, raise the limit, or use overflow: evict-resolved.',
  },
  CAPTURE_DISABLED: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'Capture is turned off (option capture, or dlq_enabled: false), so the failure was not stored.',
  },
  TOO_LARGE: {
    status: 413,
    exit: 2,
    retry: false,
    means:
      'The payload is larger than maxPayloadBytes, or a body is larger than the broker allows. Store it elsewhere and use a reference to it.',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means: 'The store is unreachable or cannot write. Nothing was acknowledged.',
  },
  STORE_UNSAFE: {
    status: 500,
    exit: 8,
    retry: false,
    means:
      'The version or a setting of the store or broker would break a guarantee. The message names it.',
  },
  RECEIPT_EXPIRED: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The receipt of a message is stale: the message was settled, or its visibility expired and another consumer may have it. Nothing was done.',
  },
  MESSAGE_FINALIZED: {
    status: 409,
    exit: 5,
    retry: false,
    means: 'This delivery of the message was already acknowledged or returned.',
  },
  REPLY_UNAVAILABLE: {
    status: 404,
    exit: 4,
    retry: false,
    means:
      'The message has no reply address, or this process does not know the mailbox that it names.',
  },
  UNDECODABLE: {
    status: 422,
    exit: 2,
    retry: false,
    means: 'The bytes of a body do not match their content type. They are stored unchanged.',
  },
  DECRYPTION_FAILED: {
    status: 500,
    exit: 6,
    retry: false,
    means:
      'A payload or a saved edit cannot be decrypted: its key is unknown in this process, is another key, or the ciphertext was changed. It stays stored. The message names the letter and the key.',
  },
  SUBJECT_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No letter is about this data subject. Nothing was erased.',
  },
  CONTENT_MISSING: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The payload of the letter was redacted before it was stored, or its content was erased. It cannot run, and can be removed.',
  },
  DOCUMENT_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'The document does not exist or was replaced. It may have been removed.',
  },
  MAILBOX_FULL: {
    status: 429,
    exit: 7,
    retry: true,
    means: 'The mailbox is full. Nothing was sent.',
  },
  MAILBOX_UNAVAILABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means:
      'The broker is unreachable or did not answer in time. The operation may or may not have been executed.',
  },
  UNAUTHENTICATED: {
    status: 401,
    exit: 3,
    retry: false,
    means:
      'The request to the server has no valid token or session. Create a token with redrive tokens create.',
  },
  FORBIDDEN: {
    status: 403,
    exit: 3,
    retry: false,
    means:
      'The token does not have the permission or the scope that the request needs. The message names it.',
  },
  TOKEN_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No token has this id. It may have been revoked.',
  },
  VIEW_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'No saved view has this id, or it is private to somebody else.',
  },
  NODE_NOT_FOUND: {
    status: 404,
    exit: 2,
    retry: false,
    means: 'No pipeline has this node, or the server has no pipeline. The message names the nodes.',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'The server has no such address. See the API reference.',
  },
  IDENTITY_PROVIDER_UNAVAILABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means:
      'The identity provider of the server is unreachable, or its answer is wrong. Sessions and API tokens still work.',
  },
  TOO_MANY_REQUESTS: {
    status: 429,
    exit: 7,
    retry: true,
    means: 'The caller sends more requests than the server allows. Wait as Retry-After says.',
  },
  SERVER_BUSY: {
    status: 503,
    exit: 8,
    retry: true,
    means:
      'The server has too many requests in flight. Nothing was done. Wait as Retry-After says.',
  },
  SERVER_UNREACHABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means: 'The command line cannot reach the server. Nothing is known about the request.',
  },
  SERVER_STOPPING: {
    status: 503,
    exit: 8,
    retry: true,
    means: 'The server is stopping. Send the request to another one, or again after its restart.',
  },
  CLOSED: {
    status: 500,
    exit: 9,
    retry: false,
    means: 'The queue, store or mailbox was used after it was closed.',
  },
} as const satisfies Record<string, { status: number; exit: number; retry: boolean; means: string }>

export type ErrorCode = keyof typeof errorTable

/**
 * The only error class of Redrive. `code` is from the table above; `cause` is the underlying error.
 */
export class RedriveError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'RedriveError'
    this.code = code
  }

  /** Whether repeating the call can help. */
  get retryHelps(): boolean {
    return errorTable[this.code].retry
  }
}

/** Whether this is a RedriveError with one of these codes. */
export function hasCode(error: unknown, ...codes: ErrorCode[]): error is RedriveError {
  return error instanceof RedriveError && codes.includes(error.code)
}
