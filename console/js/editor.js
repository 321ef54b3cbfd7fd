// The SQL box: tabs, a text area with coloured text below it, line numbers, and the buttons that run it.

import { h, icon, iconButton, reconcile } from "./dom.js";
import { paint } from "./highlight.js";
import { entries } from "./history.js";
import { openHistory } from "./history-dialog.js";
import { Parameters } from "./parameters.js";
import { Suggest } from "./suggest.js";

/** @typedef {import("./tabs.js").Tabs} Tabs */

/** @typedef {import("./api.js").Statement} Statement */

/**
 * @typedef {{ run: (statement: Statement, offset: number) => void, explain: (statement: Statement, offset: number) => void,
 *   cancel: () => void, notify: (text: string) => void, names: import("./names.js").Names }} EditorActions
 */

export class Editor {
  /** @type {{ start: number, end: number } | null} */
  #mark = null;
  #historyIndex = -1;
  #tabMovesFocus = false;

  /**
   * @param {Tabs} tabs
   * @param {EditorActions} actions
   */
  constructor(tabs, actions) {
    this.tabs = tabs;
    this.actions = actions;
    this.tabList = h("div", { class: "tab-list", role: "tablist", "aria-label": "Query tabs" });
    this.numbers = h("div", { class: "line-numbers", "aria-hidden": "true" });
    this.paper = h("pre", { class: "paper", "aria-hidden": "true" });
    this.area = h("textarea", {
      class: "sql", id: "sql", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off",
      "aria-label": "SQL", placeholder: "SELECT …",
      oninput: (/** @type {Event} */ event) => {
        this.#edited();
        this.suggest.typed(event);
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      onscroll: () => this.#scrolled(),
    });
    this.suggest = new Suggest(this.area, this.paper, {
      names: actions.names,
      insert: (start, end, text) => {
        this.area.setSelectionRange(start, end);
        this.insert(text);
        this.suggest.close();
      },
    });
    this.parameters = new Parameters({ changed: (values) => tabs.setParameters(values), run: () => this.run() });
    this.runButton = h("button", { type: "button", class: "primary", id: "run", title: "Run (Ctrl+Enter)", onclick: () => this.run() },
      icon("play"), h("span", {}, "Run"), h("kbd", {}, "Ctrl ↵"));
    this.cancelButton = h("button", { type: "button", class: "danger", id: "cancel", hidden: true, title: "Cancel (Esc)", onclick: () => actions.cancel() },
      icon("stop"), h("span", {}, "Cancel"));
    this.explainButton = h("button", { type: "button", id: "explain", title: "Run with EXPLAIN ANALYZE (Ctrl+Shift+Enter)", onclick: () => this.explain() },
      "Explain analyze");
    this.element = h("section", { class: "editor", "aria-label": "Editor" },
      h("div", { class: "tabs" }, this.tabList, iconButton("plus", "New tab", () => this.#newTab())),
      h("div", { class: "sheet" }, this.numbers, h("div", { class: "pages" }, this.paper, this.area)),
      this.suggest.list, this.parameters.element,
      h("div", { class: "toolbar" },
        this.runButton, this.cancelButton, this.explainButton,
        h("span", { class: "spring" }),
        iconButton("history", "History (Alt+↑, Alt+↓ step through it)", () => this.#openHistory()),
        iconButton("link", "Copy a link to this query", () => this.#copyLink())),
    );
    tabs.addEventListener("change", () => this.#showTab());
    this.#showTab();
  }

  focus() {
    this.area.focus();
  }

  /** What runs: the selection if there is one, else all. */
  selected() {
    const { selectionStart: start, selectionEnd: end, value } = this.area;
    const part = value.slice(start, end);
    return part.trim() === "" ? { sql: value, offset: 0 } : { sql: part, offset: start };
  }

  run() {
    const { sql, offset } = this.selected();
    if (sql.trim() !== "") this.actions.run({ sql, parameters: this.parameters.of(sql) }, offset);
  }

  explain() {
    const { sql, offset } = this.selected();
    if (sql.trim() !== "") this.actions.explain({ sql, parameters: this.parameters.of(sql) }, offset);
  }

  /** @param {boolean} running */
  setRunning(running) {
    this.runButton.hidden = running;
    this.explainButton.disabled = running;
    this.cancelButton.hidden = !running;
  }

  /**
   * Underlines the place of an error.
   *
   * @param {number | null} index character of the text, counted from 0; `null` for none
   */
  markError(index) {
    this.#mark = null;
    if (index !== null && index >= 0 && index <= this.area.value.length) {
      const word = /^(?:"[^"]*"|[\w.]+|\S)/.exec(this.area.value.slice(index));
      this.#mark = { start: index, end: index + (word ? word[0].length : 1) };
    }
    this.#paint();
  }

  /** @param {number} index */
  goTo(index) {
    this.area.focus();
    this.area.setSelectionRange(index, index);
  }

  /**
   * Puts text at the cursor, as if typed.
   *
   * @param {string} text
   */
  insert(text) {
    this.area.focus();
    // Keeps the browser's undo; `setRangeText` would not.
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.#edited();
    }
  }

  #showTab() {
    const { all, active } = this.tabs;
    if (this.area.value !== active.sql) this.area.value = active.sql;
    this.#mark = null;
    this.#historyIndex = -1;
    reconcile(this.tabList, all, (tab) => tab.id, (tab) => this.#makeTab(tab.id), (element, tab) => {
      const button = /** @type {HTMLButtonElement} */ (element.firstElementChild);
      if (button.textContent !== tab.title) button.textContent = tab.title;
      button.setAttribute("aria-selected", String(tab === active));
      button.tabIndex = tab === active ? 0 : -1;
      element.classList.toggle("active", tab === active);
    });
    this.#paint();
  }

  /** @param {string} id */
  #makeTab(id) {
    const button = h("button", {
      type: "button", role: "tab", title: "Double-click to rename",
      onclick: () => this.tabs.select(id),
      ondblclick: () => this.#rename(id),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#tabKey(event, id),
    });
    const close = h("button", { type: "button", class: "tab-close", tabindex: "-1", "aria-label": "Close tab", onclick: () => this.tabs.close(id) }, icon("close"));
    return h("div", { class: "tab" }, button, close);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {string} id
   */
  #tabKey(event, id) {
    const index = this.tabs.all.findIndex((tab) => tab.id === id);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step !== 0) {
      const next = this.tabs.all[index + step];
      if (next) this.tabs.select(next.id);
      /** @type {HTMLElement | null} */ (this.tabList.querySelector("[aria-selected=true]"))?.focus();
    } else if (event.key === "Delete") {
      this.tabs.close(id);
    } else if (event.key === "F2") {
      this.#rename(id);
    } else {
      return;
    }
    event.preventDefault();
  }

  /**
   * Puts a box over the tab's name.
   *
   * @param {string} id
   */
  #rename(id) {
    const tab = this.tabs.all.find((candidate) => candidate.id === id);
    const element = [...this.tabList.children].find((child) => child instanceof HTMLElement && child.dataset["key"] === id);
    const button = element?.firstElementChild;
    if (!tab || !(button instanceof HTMLElement) || !element || element.querySelector("input")) return;
    const end = (/** @type {boolean} */ keep) => {
      if (!box.isConnected) return;
      const title = box.value;
      box.remove();
      button.hidden = false;
      if (keep) this.tabs.rename(id, title);
    };
    const box = h("input", {
      class: "tab-name", value: tab.title, "aria-label": "Name of this tab",
      onblur: () => end(true),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        event.stopPropagation();
        if (event.key === "Enter") end(true);
        if (event.key === "Escape") end(false);
      },
    });
    button.hidden = true;
    element.append(box);
    box.select();
  }

  #newTab() {
    this.tabs.open("");
    this.focus();
  }

  #edited() {
    this.#mark = null;
    this.#historyIndex = -1;
    this.tabs.edit(this.area.value);
    this.#paint();
  }

  #paint() {
    const sql = this.area.value;
    this.parameters.show(sql, this.tabs.active.parameters ?? []);
    paint(this.paper, sql);
    if (this.#mark) underline(this.paper, this.#mark.start, this.#mark.end);
    // A last line that is empty needs something to have a height.
    this.paper.append("\n");
    const lines = sql.split("\n").length;
    if (this.numbers.childElementCount !== lines) {
      this.numbers.replaceChildren(...Array.from({ length: lines }, (_, index) => h("span", {}, index + 1)));
    }
    this.#scrolled();
  }

  #scrolled() {
    this.suggest.close();
    const { scrollLeft, scrollTop } = this.area;
    this.paper.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    this.numbers.style.transform = `translateY(${-scrollTop}px)`;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const modified = event.ctrlKey || event.metaKey;
    if (this.suggest.key(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && modified) {
      if (event.shiftKey) this.explain();
      else this.run();
    } else if (event.key === "Escape") {
      this.#tabMovesFocus = true;
      this.actions.cancel();
      return;
    } else if (event.key === "Tab" && !modified && !event.altKey && !event.shiftKey && !this.#tabMovesFocus) {
      this.insert("  ");
    } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      this.#stepHistory(event.key === "ArrowUp" ? 1 : -1);
    } else if (event.key === "/" && modified) {
      this.#toggleComment();
    } else {
      this.#tabMovesFocus = false;
      return;
    }
    this.#tabMovesFocus = false;
    event.preventDefault();
  }

  /** @param {number} step */
  #stepHistory(step) {
    const all = entries();
    const index = Math.min(Math.max(this.#historyIndex + step, 0), all.length - 1);
    const entry = all[index];
    if (!entry) return;
    this.area.value = entry.sql;
    this.#edited();
    this.#historyIndex = index;
  }

  #toggleComment() {
    const { value, selectionStart, selectionEnd } = this.area;
    const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const newline = value.indexOf("\n", selectionEnd);
    const end = newline < 0 ? value.length : newline;
    const lines = value.slice(start, end).split("\n");
    const off = lines.every((line) => line.trim() === "" || line.trimStart().startsWith("--"));
    const changed = lines.map((line) => (off ? line.replace(/^(\s*)-- ?/, "$1") : line.trim() === "" ? line : `-- ${line}`));
    this.area.setSelectionRange(start, end);
    this.insert(changed.join("\n"));
    this.area.setSelectionRange(start, start + changed.join("\n").length);
  }

  #openHistory() {
    openHistory((sql) => {
      this.tabs.open(sql);
      this.focus();
    });
  }

  async #copyLink() {
    const link = new URL(location.href);
    const sql = this.area.value;
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

/**
 * Wraps characters `start` (inclusive) to `end` (exclusive) of an element's text.
 *
 * @param {HTMLElement} element
 * @param {number} start
 * @param {number} end
 */
function underline(element, start, end) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  /** @type {{ node: Text, from: number, to: number }[]} */
  const parts = [];
  let position = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = /** @type {Text} */ (node);
    const from = Math.max(start - position, 0);
    const to = Math.min(end - position, text.length);
    if (from < to) parts.push({ node: text, from, to });
    position += text.length;
  }
  for (const { node, from, to } of parts) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(h("mark", { class: "squiggle" }));
  }
}
