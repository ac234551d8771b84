/**
 * Every error of ours: its code, the HTTP status and exit code it becomes, whether trying the same again can
 * help, and what it means. `docs/reference/errors.md` is made from this table.
 */
export const errorTable = {
  INVALID_INPUT: {
    status: 400,
    exit: 2,
    retry: false,
    means: 'An argument, query or file is not what it must be. The message names it.',
  },
  INVALID_CONFIG: {
    status: 500,
    exit: 2,
    retry: false,
    means:
      'An option or setting is unknown or out of bounds, or a server refuses the user, password or database that the URL names. The message says what to correct.',
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
      'The letter is in a state from which this action is not possible. The message says which states allow it.',
  },
  ID_CONFLICT: {
    status: 409,
    exit: 5,
    retry: false,
    means: 'A letter with this id is kept already and its payload differs. The first one stays.',
  },
  VERSION_CONFLICT: {
    status: 409,
    exit: 5,
    retry: true,
    means: 'The letter changed while the action was being decided. Read it again and repeat.',
  },
  LEASE_LOST: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The result came after the lease had passed to someone else, or a person settled the letter. It changed nothing.',
  },
  NO_ROUTE: {
    status: 422,
    exit: 6,
    retry: false,
    means:
      'The letter cannot be replayed from here: its source has no address, or nothing in this process knows it. The message says what to give.',
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
      'Capture is turned off (option capture, or dlq_enabled: false), so the failure was not kept.',
  },
  TOO_LARGE: {
    status: 413,
    exit: 2,
    retry: false,
    means:
      'The payload is larger than maxPayloadBytes, or a body larger than the broker takes. Keep it elsewhere and use a reference to it.',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means: 'The store could not be reached or could not write. Nothing was acknowledged.',
  },
  STORE_UNSAFE: {
    status: 500,
    exit: 8,
    retry: false,
    means:
      'The store or broker opened, but its version or settings would break a promise. The message says which.',
  },
  RECEIPT_EXPIRED: {
    status: 409,
    exit: 5,
    retry: false,
    means:
      'The receipt of a message is stale: it was settled, or it lapsed and somebody else may have the message. Nothing was done.',
  },
  MESSAGE_FINALIZED: {
    status: 409,
    exit: 5,
    retry: false,
    means: 'The message was acknowledged or given back already through this delivery.',
  },
  REPLY_UNAVAILABLE: {
    status: 404,
    exit: 4,
    retry: false,
    means: 'The message asks for no reply, or the mailbox it names is not known here.',
  },
  UNDECODABLE: {
    status: 422,
    exit: 2,
    retry: false,
    means: 'The bytes of a body are not what their content type says. They are kept as they are.',
  },
  DOCUMENT_NOT_FOUND: {
    status: 404,
    exit: 4,
    retry: false,
    means:
      'No document is kept at this place, or it is not the one that was put there. It may have been removed.',
  },
  MAILBOX_FULL: {
    status: 429,
    exit: 7,
    retry: true,
    means: 'The mailbox takes no more messages for now. Nothing was sent.',
  },
  MAILBOX_UNAVAILABLE: {
    status: 503,
    exit: 8,
    retry: true,
    means:
      'The broker could not be reached, or did not answer in time. What was asked may or may not have been done.',
  },
  CLOSED: {
    status: 500,
    exit: 9,
    retry: false,
    means: 'The queue, store or mailbox was used after it was closed.',
  },
} as const satisfies Record<string, { status: number; exit: number; retry: boolean; means: string }>

export type ErrorCode = keyof typeof errorTable

/** The one error class of the house. `code` is from the table above; `cause` is what led to it. */
export class RedriveError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'RedriveError'
    this.code = code
  }

  /** Whether doing the same again can help. */
  get retryHelps(): boolean {
    return errorTable[this.code].retry
  }
}

/** Whether it is an error of the house with one of these codes. */
export function hasCode(error: unknown, ...codes: ErrorCode[]): error is RedriveError {
  return error instanceof RedriveError && codes.includes(error.code)
}
