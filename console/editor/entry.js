// What the console uses of CodeMirror; build.mjs makes vendor/codemirror.js of it.

export { EditorState, Prec, StateEffect, StateField, Transaction } from "@codemirror/state";
export { Decoration, drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentLess, indentMore, isolateHistory, toggleComment } from "@codemirror/commands";
export { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionStatus, moveCompletionSelection, startCompletion } from "@codemirror/autocomplete";
export { search, searchKeymap } from "@codemirror/search";
export { PostgreSQL, sql } from "@codemirror/lang-sql";
export { tags } from "@lezer/highlight";
