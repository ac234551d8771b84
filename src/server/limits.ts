/** Limits of a request. A larger or slower one is rejected. */
export const maxBodyBytes = 10 * 1024 * 1024
/** Requests that the server works on at the same time. Default of `server.maxRequests`. */
export const defaultMaxRequests = 1000
/** Bodies that may be in memory at the same time. */
export const maxBytesInFlight = 256 * 1024 * 1024
/** Of a body that is read into memory. */
export const bodyTimeoutMs = 30_000
/** Of the rest of a body that is not read, because the request was answered without it. */
export const unreadBodyMs = 5000
export const headersTimeoutMs = 20_000
/** How often the server looks for requests that take too long. */
export const timeoutCheckMs = 5000
/** Of all lines of a request that is read as a stream, which may be many. */
export const requestTimeoutMs = 600_000
export const maxParamLength = 2000
/**
 * Bytes of a stream that the client has not read yet. Many clients read the response only after
 * they have sent all lines, so that this is also the limit for the results of those.
 */
export const maxUnreadBytes = 8 * 1024 * 1024
/** Bytes of a body that anybody may send. */
export const maxPublicBodyBytes = 16 * 1024
/** The same of a stream of events, of which a server has many. */
export const maxUnreadEventBytes = 64 * 1024
