/** The name under which `react-remove-scroll`, a part of Mantine, looks for the value. */
const globalName = '__webpack_nonce__'

/** Tells libraries that take no option for the nonce. */
export function provideCspNonce(): void {
  Object.assign(globalThis, { [globalName]: cspNonce() })
}

/** Style elements that libraries add at run time need this value, which the server puts here. */
export function cspNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
}
