// Signs in, and shows counts and the newest letters. Everything from the server is set as text.
const states = ['pending', 'retrying', 'exhausted', 'parked', 'resolved', 'archived']
const refreshMs = 3000
const find = (id) => document.getElementById(id)

class Problem extends Error {
  constructor({ status, detail }) {
    super(detail)
    this.status = status
  }
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    // Another site cannot make a browser send this header.
    headers: { 'x-redrive-csrf': '1', ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (response.ok) return answer
  throw new Problem({ ...answer, status: response.status })
}

/** An element with a class and children, which are elements or text. */
function element(name, className, ...children) {
  const made = document.createElement(name)
  if (className) made.className = className
  made.append(...children)
  return made
}

function showMessage(text) {
  find('message').textContent = text
  find('message').hidden = text === ''
}

function showTable(id, heads, rows, whenEmpty) {
  const head = element('tr', '', ...heads)
  const empty = element('tr', '', element('td', 'dim', whenEmpty))
  find(id).replaceChildren(...(rows.length > 0 ? [head, ...rows] : [empty]))
}

const cell = (text, className = '') => element('td', className, String(text))
const heading = (text) => element('th', '', text)

function showQueues(queues) {
  const total = (state) => queues.reduce((sum, queue) => sum + queue.states[state], 0)
  find('states').replaceChildren(
    ...states.map((state) =>
      element('li', '', element('strong', state, total(state).toLocaleString('en')), state),
    ),
  )
  showTable(
    'queues',
    [heading('queue'), heading('letters')],
    queues.map(({ queue, states: counts, paused }) =>
      element('tr', '', cell(paused ? `${queue} (paused)` : queue), countsCell(counts)),
    ),
    'No queue has letters yet. Send the first one as shown below.',
  )
}

function countsCell(counts) {
  const parts = states
    .filter((state) => counts[state] > 0)
    .map((state) => element('span', state, `${counts[state].toLocaleString('en')} ${state}`))
  return element('td', 'long', element('div', 'row', ...parts))
}

function showLetters(letters) {
  showTable(
    'letters',
    ['time', 'queue', 'state', 'failure'].map(heading),
    letters.map(({ deadLetteredAt, queue, state, failure, hidden }) =>
      element(
        'tr',
        '',
        cell(new Date(deadLetteredAt).toLocaleTimeString(), 'dim'),
        cell(queue),
        cell(state, state),
        cell(hidden ? failure.name : `${failure.name}: ${failure.message}`.slice(0, 300), 'long'),
      ),
    ),
    'There are no letters yet.',
  )
}

async function refresh() {
  try {
    const [queues, letters] = await Promise.all([
      call('GET', '/api/queues?limit=1000'),
      call('GET', '/api/letters?limit=15'),
    ])
    showQueues(queues.items)
    showLetters(letters.items)
    showMessage('')
  } catch (error) {
    if (error.status === 401) return showSignIn()
    showMessage(error instanceof Problem ? error.message : 'The server does not answer.')
  }
  setTimeout(() => void refresh(), refreshMs)
}

function showSignIn() {
  for (const id of ['content', 'sign-out']) find(id).hidden = true
  find('caller').textContent = ''
  find('sign-in').hidden = false
  void showProvider().catch((error) => showMessage(error.message))
}

async function showProvider() {
  const { oidc } = await call('GET', '/api/session/methods')
  find('provider').hidden = !oidc
}

async function showContent() {
  const { name, role } = await call('GET', '/api/session')
  find('caller').textContent = role === undefined || role === name ? name : `${name} (${role})`
  find('sign-in').hidden = true
  for (const id of ['content', 'sign-out']) find(id).hidden = false
  void refresh()
}

/** Exchanges a code or a token for a session, whose cookie scripts cannot read. */
async function signIn(credential) {
  showMessage('')
  try {
    if (credential) await call('POST', '/api/session', credential)
  } catch (error) {
    showMessage(error.message)
  }
  // The code may be used up while the session of it is still valid.
  await showContent().catch(showSignIn)
}

find('sign-in').addEventListener('submit', (event) => {
  event.preventDefault()
  void signIn({ token: find('token').value.trim() })
  find('token').value = ''
})
find('sign-out').addEventListener('click', () => {
  void call('DELETE', '/api/session').then(() => location.reload())
})
find('copy').addEventListener('click', () => {
  void navigator.clipboard.writeText(find('curl').textContent)
})
find('curl').textContent =
  `curl -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
  -d '{ "queue": "charge-card", "json": { "order": 42, "amount": 20 },
        "error": { "message": "socket hang up", "code": "ECONNRESET" } }' \\
  ${location.origin}/api/capture`

const code = new URLSearchParams(location.hash.slice(1)).get('code')
// The code must stay neither in the address bar nor in the history.
if (code !== null) history.replaceState(null, '', location.pathname)
void signIn(code === null ? undefined : { code })
