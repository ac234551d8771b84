import type { GroupDetailView, GroupView } from '../api/schemas/group.ts'
import type { Group, GroupDetail } from '../letter/group.ts'
import type { Caller } from './caller.ts'
import { mayReadContent } from './view.ts'

/** A group of a list as a caller may see it. */
export function viewGroup(group: Group, caller: Caller): GroupView {
  return mayReadContent(caller) ? group : { ...group, title: '', hidden: true }
}

/** A group with its notes as a caller may see it. */
export function viewGroupDetail(group: GroupDetail, caller: Caller): GroupDetailView {
  return mayReadContent(caller) ? group : { ...group, title: '', notes: [], hidden: true }
}
