// The text box of the SQL editor: CodeMirror, which is loaded when the editor is first shown. Each tab keeps its own
// undo.

import { complete } from "./completion.js";
import { statementAt, statementsOf } from "./sql-tokens.js";

/** @typedef {typeof import("../vendor/codemirror.js")} Library */
/** @typedef {import("../vendor/codemirror.js").EditorState} EditorState */
/** @typedef {import("../vendor/codemirror.js").EditorView} EditorView */
/** @typedef {import("../vendor/codemirror.js").DecorationSet} DecorationSet */
/** @typedef {import("../vendor/codemirror.js").Tr} Tr */
/** @typedef {import("../vendor/codemirror.js").Extension} Extension */

/**
 * @typedef {{ changed: (sql: string) => void, run: () => void, runAll: () => void, explain: () => void, format: () => void,
 *   cancel: () => void, stepHistory: (step: number) => void, names: import("./names.js").Names }} CodeActions
 */

/** So many characters of a word call for proposals by themselves. */
const WORD_MIN = 2;
/** In longer texts, the statement at the caret is not marked. */
const MARKED_MAX = 100_000;

export class Code {
  /** @type {Library | null} */
  #library = null;
  /** @type {Promise<void> | null} */
  #loading = null;
  /** @type {EditorView | null} */
  #view = null;
  /** What each tab's text was when another one was shown. @type {Map<string, EditorState>} */
  #states = new Map();
  #tab = "";
  #text = "";
  /** Whether Enter takes a proposal: after Ctrl+Space or an arrow key. */
  #chosen = false;
  #wantsFocus = false;
  /** @type {Extension[]} */
  #extensions = [];
  /** @type {import("../vendor/codemirror.js").EffectType<{ from: number, to: number, message: string } | null> | null} */
  #setMark = null;

  /**
   * @param {HTMLElement} parent
   * @param {CodeActions} actions
   */
  constructor(parent, actions) {
    this.parent = parent;
    this.actions = actions;
  }

  /** Loads the editor; completes when it is there. */
  load() {
    this.#loading ??= import("../vendor/codemirror.js").then((library) => this.#start(library));
    return this.#loading;
  }

  get text() {
    return this.#view?.state.doc.toString() ?? this.#text;
  }

  /** What is selected; nothing has the same ends, at the caret. */
  get selection() {
    const main = this.#view?.state.selection.main;
    return { from: main?.from ?? 0, to: main?.to ?? 0 };
  }

  focus() {
    this.#wantsFocus = true;
    this.#view?.focus();
  }

  /** The element that has the keyboard; nothing before it is loaded. */
  get area() {
    return this.#view?.contentDOM ?? null;
  }

  /**
   * Shows a tab's text. A text that was changed elsewhere is an edit like others, which can be undone.
   *
   * @param {string} tab
   * @param {string} sql
   */
  show(tab, sql) {
    const view = this.#view;
    this.#text = sql;
    if (!view) {
      this.#tab = tab;
      return;
    }
    if (tab !== this.#tab) {
      if (this.#tab !== "") this.#states.set(this.#tab, view.state);
      this.#tab = tab;
      view.setState(this.#states.get(tab) ?? this.#newState(sql));
    }
    if (this.text !== sql) this.replace(sql);
  }

  /** @param {string} tab that was closed */
  forget(tab) {
    this.#states.delete(tab);
    if (this.#tab === tab) this.#tab = "";
  }

  /**
   * Puts another text in the place of the whole, as one step of undo.
   *
   * @param {string} sql
   */
  replace(sql) {
    const view = this.#view;
    if (!view || !this.#library) return;
    const { length } = view.state.doc;
    const { anchor } = view.state.selection.main;
    view.dispatch({
      changes: { from: 0, to: length, insert: sql }, selection: { anchor: Math.min(anchor, sql.length) },
      annotations: this.#library.isolateHistory.of("full"), userEvent: "input.replace",
    });
  }

  /**
   * Puts text in the place of the selection.
   *
   * @param {string} text
   */
  insert(text) {
    const view = this.#view;
    if (!view) return;
    view.focus();
    view.dispatch({ ...view.state.replaceSelection(text), scrollIntoView: true, userEvent: "input" });
  }

  /** @param {number} index */
  goTo(index) {
    const view = this.#view;
    if (!view) return;
    view.focus();
    view.dispatch({ selection: { anchor: Math.min(index, view.state.doc.length) }, scrollIntoView: true });
  }

  /**
   * Underlines the place of an error, until the text is edited.
   *
   * @param {number | null} index character of the text, counted from 0; `null` for none
   * @param {string} [message]
   */
  markError(index, message = "") {
    const text = this.text;
    if (!this.#view || !this.#setMark) return;
    let mark = null;
    if (index !== null && index >= 0 && text.length > 0) {
      const from = Math.min(index, text.length - 1);
      const word = /^(?:"[^"]*"|[\w.]+|\S)/.exec(text.slice(from));
      mark = { from, to: from + (word?.[0].length ?? 1), message };
    }
    this.#view.dispatch({ effects: this.#setMark.of(mark) });
  }

  /** @param {Library} library */
  #start(library) {
    this.#library = library;
    this.#extensions = this.#makeExtensions(library);
    this.#view = new library.EditorView({ state: this.#newState(this.#text), parent: this.parent });
    if (this.#wantsFocus) this.#view.focus();
  }

  /** @param {string} sql */
  #newState(sql) {
    const library = /** @type {Library} */ (this.#library);
    return library.EditorState.create({ doc: sql, extensions: this.#extensions });
  }

  /**
   * @param {Library} library
   * @returns {Extension[]}
   */
  #makeExtensions(library) {
    const { EditorView, EditorState, Prec, keymap } = library;
    const { actions } = this;
    return [
      Prec.highest(keymap.of(this.#keys(library))),
      library.lineNumbers(), library.highlightSpecialChars(), library.history(), library.drawSelection(),
      library.bracketMatching(), library.closeBrackets(), library.search({ top: true }),
      library.indentUnit.of("  "), EditorState.tabSize.of(2),
      library.sql({ dialect: library.PostgreSQL }), library.syntaxHighlighting(colours(library)),
      library.placeholder("SELECT …"),
      library.autocompletion({
        override: [(context) => this.#complete(context)], defaultKeymap: false, interactionDelay: 0, icons: false,
        activateOnTyping: true, maxRenderedOptions: 60, optionClass: ({ type }) => type ?? "",
      }),
      keymap.of([...library.closeBracketsKeymap, ...library.historyKeymap, ...library.searchKeymap, ...library.defaultKeymap]),
      EditorView.contentAttributes.of({ id: "sql", "aria-label": "SQL", tabindex: "0", spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
      EditorView.updateListener.of(({ docChanged, state }) => {
        if (docChanged) actions.changed(state.doc.toString());
        if (library.completionStatus(state) === null) this.#chosen = false;
      }),
      theme(library), this.#errorMark(library), statementMark(library),
    ];
  }

  /**
   * @param {Library} library
   * @returns {import("../vendor/codemirror.js").Binding[]}
   */
  #keys(library) {
    const { actions } = this;
    /** @type {(act: () => void) => import("../vendor/codemirror.js").Command} */
    const doing = (act) => (view) => {
      library.closeCompletion(view);
      act();
      return true;
    };
    /** @type {(forward: boolean) => import("../vendor/codemirror.js").Command} */
    const moving = (forward) => (view) => {
      const moved = library.moveCompletionSelection(forward)(view);
      this.#chosen ||= moved;
      return moved;
    };
    return [
      { key: "Mod-Enter", run: doing(actions.run) },
      { key: "Mod-Alt-Enter", run: doing(actions.runAll) },
      { key: "Mod-Shift-Enter", run: doing(actions.explain) },
      { key: "Alt-Shift-f", run: doing(actions.format) },
      { key: "Alt-ArrowUp", run: doing(() => actions.stepHistory(1)) },
      { key: "Alt-ArrowDown", run: doing(() => actions.stepHistory(-1)) },
      { key: "Ctrl-Space", run: (view) => { this.#chosen = true; return library.startCompletion(view); } },
      { key: "ArrowDown", run: moving(true) },
      { key: "ArrowUp", run: moving(false) },
      { key: "Enter", run: (view) => {
        if (this.#chosen && library.acceptCompletion(view)) return true;
        library.closeCompletion(view);
        return false;
      } },
      { key: "Escape", run: (view) => {
        if (library.closeCompletion(view)) return true;
        actions.cancel();
        return false;
      } },
      { key: "Tab", run: (view) => library.acceptCompletion(view) || this.#indent(library, view), shift: library.indentLess },
      { key: "Mod-/", run: library.toggleComment },
    ];
  }

  /**
   * @param {Library} library
   * @param {EditorView} view
   */
  #indent(library, view) {
    if (!view.state.selection.main.empty) return library.indentMore(view);
    view.dispatch({ ...view.state.replaceSelection("  "), userEvent: "input" });
    return true;
  }

  /** @param {import("../vendor/codemirror.js").CompletionContext} context */
  async #complete({ state, pos, explicit }) {
    const sql = state.doc.toString();
    const before = /[\w"]*$/.exec(sql.slice(Math.max(0, pos - 200), pos))?.[0] ?? "";
    if (!explicit && before.length < WORD_MIN && sql[pos - 1] !== ".") return null;
    await this.actions.names.ready();
    const found = complete(sql, pos, this.actions.names.tables);
    if (!found) return null;
    const options = found.all.map(({ text, kind, from }) => ({ label: text, type: kind, detail: from === "" ? kind : `${kind} of ${from}` }));
    return { from: found.start, to: found.end, options, filter: false };
  }

  /**
   * @param {Library} library
   * @returns {Extension}
   */
  #errorMark({ StateEffect, StateField, Decoration, EditorView }) {
    /** @type {import("../vendor/codemirror.js").EffectType<{ from: number, to: number, message: string } | null>} */
    const setMark = StateEffect.define();
    this.#setMark = setMark;
    return StateField.define({
      create: () => Decoration.none,
      update(marks, tr) {
        const effect = tr.effects.find((candidate) => candidate.is(/** @type {import("../vendor/codemirror.js").EffectType<unknown>} */ (setMark)));
        if (!effect) return tr.docChanged ? Decoration.none : marks;
        const mark = /** @type {{ from: number, to: number, message: string } | null} */ (effect.value);
        if (mark === null) return Decoration.none;
        return Decoration.set([Decoration.mark({ class: "squiggle", attributes: { title: mark.message } }).range(mark.from, mark.to)]);
      },
      provide: (field) => EditorView.decorations.from(field),
    });
  }
}

/**
 * Marks the lines of the statement that Ctrl+Enter runs, where there are several.
 *
 * @param {Library} library
 * @returns {Extension}
 */
function statementMark({ StateField, Decoration, EditorView }) {
  /** @type {(state: EditorState) => DecorationSet} */
  const marks = (state) => {
    if (state.doc.length > MARKED_MAX) return Decoration.none;
    const text = state.doc.toString();
    const statement = statementsOf(text).length > 1 ? statementAt(text, state.selection.main.head) : null;
    if (!statement || !state.selection.main.empty) return Decoration.none;
    const ranges = [];
    const last = state.doc.lineAt(statement.to).number;
    for (let number = state.doc.lineAt(statement.from).number; number <= last; number += 1) {
      ranges.push(Decoration.line({ class: "cm-statement" }).range(state.doc.line(number).from));
    }
    return Decoration.set(ranges);
  };
  return StateField.define({
    create: marks,
    update: (_, tr) => marks(tr.state),
    provide: (field) => EditorView.decorations.from(field),
  });
}

/** @param {Library} library */
function colours({ HighlightStyle, tags }) {
  return HighlightStyle.define([
    { tag: tags["keyword"], class: "sql-keyword" }, { tag: tags["typeName"], class: "sql-keyword" }, { tag: tags["bool"], class: "sql-keyword" }, { tag: tags["null"], class: "sql-keyword" },
    { tag: tags["string"], class: "sql-string" }, { tag: tags["number"], class: "sql-number" }, { tag: tags["comment"], class: "sql-comment" }, { tag: tags["lineComment"], class: "sql-comment" }, { tag: tags["blockComment"], class: "sql-comment" },
  ]);
}

/** @param {Library} library */
function theme({ EditorView }) {
  return EditorView.theme({
    "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--paper)", fontSize: "12.5px" },
    "&.cm-focused": { outline: "none" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px", fontVariantLigatures: "none" },
    ".cm-content": { padding: "10px 0", caretColor: "var(--text)" },
    ".cm-line": { padding: "0 12px 0 4px" },
    ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--faint)", border: "0", fontSize: "12px" },
    ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", padding: "0 8px" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    "& > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--selection)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--selection)" },
    ".cm-content ::selection": { backgroundColor: "transparent" },
    ".cm-placeholder": { color: "var(--faint)" },
    "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--bracket)", outline: "1px solid var(--accent)" },
    "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-soft)", color: "var(--bad)" },
    ".cm-statement": { boxShadow: "inset 2px 0 0 var(--accent)" },
    ".cm-tooltip": { border: "1px solid var(--line-strong)", borderRadius: "var(--radius)", backgroundColor: "var(--raised)", color: "var(--text)", boxShadow: "0 6px 24px rgb(0 0 0 / 18%)" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxHeight: "236px", minWidth: "220px", fontFamily: "var(--mono)", fontSize: "12px" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { display: "flex", justifyContent: "space-between", gap: "18px", padding: "1px 7px" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
    ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
    ".cm-completionDetail": { color: "var(--muted)", fontFamily: "var(--sans)", fontSize: "11px", fontStyle: "normal", lineHeight: "19px" },
    ".cm-panels": { backgroundColor: "var(--ground)", color: "var(--text)", borderColor: "var(--line)" },
    ".cm-panel.cm-search": { fontFamily: "var(--sans)", fontSize: "12px" },
    ".cm-textfield, .cm-button": { background: "var(--paper)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "var(--radius)", fontSize: "12px" },
    ".cm-searchMatch": { backgroundColor: "var(--match)" },
    ".cm-searchMatch-selected": { backgroundColor: "var(--match-strong)" },
  });
}
