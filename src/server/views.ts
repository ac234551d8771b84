import type { SavedView, SavedViewInput } from '../api/schemas/saved-view.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import type { LetterFilter } from '../letter/query.ts'
import { readSealed } from '../letter/sealed.ts'
import { toTimestamp } from '../letter/time.ts'
import type { DocumentRecord, Store } from '../store.ts'
import { checkContentFields, hideContentFields } from './bounds.ts'
import type { Caller } from './caller.ts'
import { mayReadContent } from './view.ts'
import { checkProbe, redactAny, type Viewer } from './viewer.ts'

const kind = 'view'
/** Of the whole store, so that a list of all views stays short. */
const maxViews = 500
/** Of one owner, so that nobody can use up the views of all others. */
const maxOwnViews = 100

type StoredView = Omit<SavedView, 'id' | 'version' | 'hidden'>

/** Lists of letters that people have saved under a name. */
export class Views {
  readonly #store: Pick<Store, 'records'>
  readonly #clock: Clock

  constructor(store: Pick<Store, 'records'>, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** The views that a caller may see, by name. */
  async list(caller: Viewer): Promise<SavedView[]> {
    const views = await this.#all()
    return views
      .filter((view) => maySee(view, caller))
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
      .map((view) => showView(view, caller))
  }

  async create(input: SavedViewInput, caller: Viewer): Promise<SavedView> {
    checkContentFields(input.filter, caller)
    checkProbe(input.filter as LetterFilter, caller)
    const views = await this.#all()
    const own = views.filter(({ owner }) => owner === caller.name)
    if (own.length >= maxOwnViews)
      throw tooMany(`${caller.name} has ${own.length} saved views, the limit is ${maxOwnViews}`)
    if (views.length >= maxViews)
      throw tooMany(`the store has ${views.length} saved views, the limit is ${maxViews}`)
    const now = toTimestamp(this.#clock.now())
    const stored: StoredView = { ...input, owner: caller.name, createdAt: now, changedAt: now }
    const id = this.#clock.id()
    await this.#store.records.put(kind, id, stored as unknown as Json, 0)
    return showView({ ...stored, id, version: 1 }, caller)
  }

  /**
   * Replaces a view that the caller may change. With `ifVersion`, only if the view still has it.
   */
  async replace(
    view: SavedView,
    input: SavedViewInput,
    caller: Viewer,
    ifVersion: number | undefined,
  ): Promise<SavedView> {
    checkContentFields(input.filter, caller)
    checkProbe(input.filter as LetterFilter, caller)
    checkVersion(view, ifVersion)
    const { id, owner, createdAt, version } = view
    const changedAt = toTimestamp(this.#clock.now())
    const stored: StoredView = { ...input, owner, createdAt, changedAt }
    const value = stored as unknown as Json
    if ((await this.#store.records.put(kind, id, value, version)) === 'conflict')
      throw new RedriveError(
        'VERSION_CONFLICT',
        `saved view ${id} was changed concurrently: read it again`,
      )
    return showView({ ...stored, id, version: version + 1 }, caller)
  }

  /** The version is compared before the removal, and not at the same time. */
  async remove(view: SavedView, caller: Viewer, ifVersion: number | undefined): Promise<SavedView> {
    checkVersion(view, ifVersion)
    if (!(await this.#store.records.remove(kind, view.id))) throw notFound(view.id)
    return showView(view, caller)
  }

  /** A view that the caller may change: an own one, or for an admin every shared one. */
  async findChangeable(id: string, caller: Viewer): Promise<SavedView> {
    const record = await this.#store.records.get(kind, id)
    const view = record ? viewOf(record) : undefined
    if (!view || !maySee(view, caller)) throw notFound(id)
    if (view.owner === caller.name || caller.permissions.has('admin')) return view
    throw new RedriveError(
      'FORBIDDEN',
      `saved view ${id} belongs to ${view.owner}: only ${view.owner} and callers with the permission admin may change it`,
    )
  }

  async #all(): Promise<SavedView[]> {
    const records = await this.#store.records.list(kind)
    // A view that this process cannot decrypt is left out.
    return records.filter(({ value }) => !readSealed(value)).map(viewOf)
  }
}

function viewOf({ id, version, value }: DocumentRecord): SavedView {
  return { ...(value as unknown as StoredView), id, version }
}

/** Names of queues and tenants outside the scope stay unknown. */
function maySee({ owner, shared, filter }: SavedView, { name, scope }: Caller): boolean {
  if (owner === name) return true
  const isWithin = (given: readonly string[], allowed: readonly string[] | undefined): boolean =>
    allowed === undefined || given.every((one) => allowed.includes(one))
  return (
    shared &&
    isWithin([filter.queue ?? []].flat(), scope.queues) &&
    isWithin([filter.tenant ?? []].flat(), scope.tenants)
  )
}

/** A view as a caller may see it: values of a filter can come from payloads and errors. */
function showView(view: SavedView, caller: Viewer): SavedView {
  if (mayReadContent(caller)) return { ...view, filter: redactAny(view.filter, caller) }
  return { ...view, filter: hideContentFields(view.filter), hidden: true }
}

function checkVersion({ id, version }: SavedView, ifVersion: number | undefined): void {
  if (ifVersion === undefined || ifVersion === version) return
  throw new RedriveError(
    'VERSION_CONFLICT',
    `saved view ${id} has version ${version}, not ${ifVersion}: read it again`,
  )
}

function notFound(id: string): RedriveError {
  return new RedriveError(
    'VIEW_NOT_FOUND',
    `there is no saved view ${JSON.stringify(id.slice(0, 100))}: list the views`,
  )
}

function tooMany(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', `${message}: remove some first`)
}
