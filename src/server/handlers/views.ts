import type { viewEndpoints } from '../../api/endpoints/views.ts'
import type { Handlers } from './handler.ts'

export const viewHandlers: Handlers<keyof typeof viewEndpoints> = {
  listViews: (_, { views, caller }) => views.list(caller),

  createView: (input, { views, caller }) => views.create(input, caller),

  replaceView(given, { views, view, caller, ifVersion }) {
    const { id: _, ...input } = given
    return views.replace(view, input, caller, ifVersion)
  },

  removeView: (_, { views, view, caller, ifVersion }) => views.remove(view, caller, ifVersion),
}
