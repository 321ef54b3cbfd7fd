// The SQL box: tabs, the text, fields for parameters, and the buttons that run it.

import { Code } from "./code.js";
import { h, icon, iconButton } from "./dom.js";
import { formatSql } from "./format-sql.js";
import { entries } from "./history.js";
import { openHistory } from "./history-dialog.js";
import { Parameters } from "./parameters.js";
import { statementAt, statementsOf } from "./sql-tokens.js";
import { TabBar } from "./tab-bar.js";

/** @typedef {import("./tabs.js").Tabs} Tabs */
/** @typedef {import("./api.js").Statement} Statement */

/**
 * @typedef {{ run: (statement: Statement, offset: number) => void, explain: (statement: Statement, offset: number) => void,
 *   cancel: () => void, close: (id: string) => void, notify: (text: string) => void, names: import("./names.js").Names }} EditorActions
 */

export class Editor {
  #historyIndex = -1;
  /** The text from before the first step through history. */
  #draft = "";
  #stepping = false;

  /**
   * @param {Tabs} tabs
   * @param {EditorActions} actions
   */
  constructor(tabs, actions) {
    this.tabs = tabs;
    this.actions = actions;
    this.bar = new TabBar(tabs, { open: () => this.#newTab(), close: actions.close });
    const sheet = h("div", { class: "sheet" });
    this.code = new Code(sheet, {
      changed: (sql) => this.#edited(sql), run: () => this.run(), runAll: () => this.runAll(), explain: () => this.explain(),
      format: () => this.#format(), cancel: actions.cancel, stepHistory: (step) => this.#stepHistory(step), names: actions.names,
    });
    this.parameters = new Parameters({ changed: (values) => tabs.setParameters(values), run: () => this.run() });
    this.runButton = h("button", { type: "button", class: "primary", id: "run", title: "Run the statement at the caret, or what is selected (Ctrl+Enter)", onclick: () => this.run() },
      icon("play"), h("span", {}, "Run"), h("kbd", {}, "Ctrl ↵"));
    this.allButton = h("button", { type: "button", id: "run-all", title: "Run all statements, one after the other (Ctrl+Alt+Enter)", onclick: () => this.runAll() }, "Run all");
    this.cancelButton = h("button", { type: "button", class: "danger", id: "cancel", hidden: true, title: "Cancel (Esc)", onclick: () => actions.cancel() },
      icon("stop"), h("span", {}, "Cancel"));
    this.explainButton = h("button", { type: "button", id: "explain", title: "Run with EXPLAIN ANALYZE (Ctrl+Shift+Enter)", onclick: () => this.explain() },
      "Explain analyze");
    this.element = h("section", { class: "editor", "aria-label": "Editor" },
      this.bar.element, sheet, this.parameters.element,
      h("div", { class: "toolbar" },
        this.runButton, this.allButton, this.cancelButton, this.explainButton,
        h("span", { class: "spring" }),
        iconButton("format", "Format (Alt+Shift+F)", () => this.#format()),
        iconButton("history", "History and closed tabs (Alt+↑, Alt+↓ step through it)", () => this.#openHistory()),
        iconButton("link", "Copy a link to this query", () => this.#copyLink())),
    );
    tabs.addEventListener("change", () => this.#showTab());
    this.#showTab();
  }

  /** Loads what the text box is made of. */
  load() {
    return this.code.load();
  }

  focus() {
    this.code.focus();
  }

  get area() {
    return this.code.area;
  }

  /**
   * What runs: the selection if there is one, else the statement at the caret.
   *
   * @returns {{ sql: string, offset: number } | null}
   */
  selected() {
    const text = this.code.text;
    const { from, to } = this.code.selection;
    const part = text.slice(from, to);
    if (part.trim() !== "") return { sql: part, offset: from };
    const statement = statementAt(text, from);
    // A text without a statement goes to the server, which says so.
    if (!statement) return text.trim() === "" ? null : { sql: text, offset: 0 };
    return { sql: statement.text, offset: statement.from };
  }

  run() {
    const part = this.selected();
    if (part) this.actions.run({ sql: part.sql, parameters: this.parameters.of(part.sql) }, part.offset);
  }

  runAll() {
    const sql = this.code.text;
    if (sql.trim() !== "") this.actions.run({ sql, parameters: this.parameters.of(sql) }, 0);
  }

  explain() {
    const part = this.selected();
    if (part) this.actions.explain({ sql: part.sql, parameters: this.parameters.of(part.sql) }, part.offset);
  }

  /** @param {boolean} running */
  setRunning(running) {
    this.runButton.hidden = running;
    this.allButton.disabled = running;
    this.explainButton.disabled = running;
    this.cancelButton.hidden = !running;
  }

  /**
   * Underlines the place of an error.
   *
   * @param {number | null} index character of the text, counted from 0; `null` for none
   * @param {string} [message]
   */
  markError(index, message) {
    this.code.markError(index, message);
  }

  /** @param {number} index */
  goTo(index) {
    this.code.goTo(index);
  }

  /**
   * Puts text at the cursor, as if typed.
   *
   * @param {string} text
   */
  insert(text) {
    this.code.insert(text);
  }

  /** @param {string} id of a tab that was closed */
  forget(id) {
    this.code.forget(id);
  }

  #showTab() {
    const { active } = this.tabs;
    this.#historyIndex = -1;
    this.code.show(active.id, active.sql);
    this.bar.show();
    this.#showParts(active.sql);
  }

  #newTab() {
    this.tabs.open("");
    this.focus();
  }

  /** @param {string} sql */
  #edited(sql) {
    if (!this.#stepping) this.#historyIndex = -1;
    this.tabs.edit(sql);
    this.#showParts(sql);
  }

  /**
   * What depends on the text.
   *
   * @param {string} sql
   */
  #showParts(sql) {
    this.parameters.show(sql, this.tabs.active.parameters ?? []);
    this.allButton.hidden = statementsOf(sql).length < 2;
  }

  #format() {
    const { from, to } = this.code.selection;
    const text = this.code.text;
    if (from === to) this.#replace(formatSql(text));
    else this.code.insert(formatSql(text.slice(from, to)).trimEnd());
  }

  /** @param {string} sql */
  #replace(sql) {
    if (sql !== this.code.text) this.code.replace(sql);
  }

  /** @param {number} step */
  #stepHistory(step) {
    const all = entries();
    if (this.#historyIndex < 0) this.#draft = this.code.text;
    const index = Math.min(Math.max(this.#historyIndex + step, -1), all.length - 1);
    this.#stepping = true;
    this.#replace(index < 0 ? this.#draft : (all[index]?.sql ?? this.#draft));
    this.#stepping = false;
    this.#historyIndex = index;
  }

  #openHistory() {
    openHistory(this.tabs.closed(), {
      choose: (sql) => this.#open(sql),
      reopen: (closed) => this.#open(closed.sql, closed.title, closed.parameters),
    });
  }

  /**
   * @param {string} sql
   * @param {string} [title]
   * @param {(string | null)[]} [parameters]
   */
  #open(sql, title, parameters) {
    this.tabs.open(sql, title, parameters);
    this.focus();
  }

  async #copyLink() {
    const link = new URL(location.href);
    const sql = this.code.text;
    const parameters = this.parameters.of(sql);
    link.hash = new URLSearchParams({ sql, ...(parameters.length > 0 ? { parameters: JSON.stringify(parameters) } : {}) }).toString();
    try {
      await navigator.clipboard.writeText(link.href);
      this.actions.notify("Link copied");
    } catch {
      this.actions.notify("The browser did not allow copying");
    }
  }
}
