const pattern = /^(?:(grpcs?):\/\/)?((?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5})$/

export function isGrpcAddress(text: string): boolean {
  return grpcTarget(text) !== undefined
}

/** Parses `host:port`, or `grpcs://host:port` over TLS. Undefined for anything else. */
export function grpcTarget(text: string): { host: string; secure: boolean } | undefined {
  const [, scheme, host] = pattern.exec(text) ?? []
  return host === undefined ? undefined : { host, secure: scheme === 'grpcs' }
}
