import { useEffect, useRef } from 'react'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { linter, lintGutter } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { cspNonce } from '../app/csp-nonce.ts'
import classes from './code.module.css'

type Language = 'json' | 'text'

/** The editor itself. This module has the editor library and is loaded when an editor is shown. */
export function Editor({
  label,
  initial,
  language,
  onChange,
}: {
  label: string
  initial: string
  language: Language
  onChange: (text: string) => void
}) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const listener = EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange(update.state.doc.toString())
    })
    const view = new EditorView({
      doc: initial,
      extensions: [
        ...shared(label, language),
        history(),
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        language === 'json' ? [linter(jsonParseLinter()), lintGutter()] : [],
        listener,
      ],
      parent: element.current!,
    })
    view.focus()
    return () => view.destroy()
  }, [label, initial, language, onChange])
  return <div ref={element} className={classes.code} />
}

export function Diff({
  label,
  before,
  after,
  language,
}: {
  label: string
  before: string
  after: string
  language: Language
}) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const view = new EditorView({
      doc: after,
      extensions: [
        ...shared(label, language),
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        unifiedMergeView({
          original: before,
          mergeControls: false,
          collapseUnchanged: { margin: 3, minSize: 6 },
          diffConfig: { scanLimit: 1000, timeout: 500 },
        }),
      ],
      parent: element.current!,
    })
    return () => view.destroy()
  }, [label, before, after, language])
  return <div ref={element} className={classes.code} />
}

function shared(label: string, language: Language): Extension[] {
  return [
    EditorView.cspNonce.of(cspNonce()),
    EditorView.contentAttributes.of({ 'aria-label': label }),
    EditorView.lineWrapping,
    lineNumbers(),
    highlightSelectionMatches(),
    language === 'json' ? json() : [],
  ]
}
