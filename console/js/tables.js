// The tree of namespaces, tables and columns.

import { ApiError, runSql, table as fetchTable, tables as fetchTables } from "./api.js";
import { h, icon, iconButton } from "./dom.js";
import { bytes, count, plural, short, sortOrder } from "./format.js";
import { quoted } from "./sql-names.js";
import { OWN } from "./statements.js";

/** @typedef {import("./api.js").Namespace} Namespace */
/** @typedef {import("./api.js").TableSummary} TableSummary */
/** @typedef {import("./api.js").TableDetails} TableDetails */

/**
 * @typedef {{ preview: (namespace: string, table: string) => void, insert: (text: string) => void,
 *   details: (namespace: string, table: string) => void, changed: () => void, empty: (isEmpty: boolean) => void }} TableActions
 */

/** @typedef {{ name: string, columns: { name: string, type: string }[] }} SystemTable */

/** The namespace of the server's figures about itself. */
const SYSTEM = "system";
/** Tables of a namespace, and columns of a table, that are shown at once. */
const ITEMS_MAX = 200;
const SYSTEM_COLUMNS = `SELECT table_name, column_name, data_type FROM information_schema.columns AS ${OWN}
WHERE table_schema = '${SYSTEM}' ORDER BY table_name, ordinal_position`;

export class Tables {
  /** @type {Namespace[]} */
  #namespaces = [];
  /** @type {Set<string>} */
  #open = new Set();
  /** Namespaces whose tables are not shown: the server's own, until somebody asks for them. @type {Set<string>} */
  #closed = new Set([SYSTEM]);
  /** The server's own tables, once they were read. @type {SystemTable[] | string | null} */
  #system = null;
  /** @type {Map<string, TableDetails | string>} */
  #details = new Map();
  #shown = "";
  /** Of namespaces with many tables, the first one that is shown. @type {Map<string, number>} */
  #from = new Map();

  /** @param {TableActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.filter = h("input", { type: "search", class: "filter", placeholder: "Filter tables", "aria-label": "Filter tables", title: "Press / to come here", oninput: () => { this.#from.clear(); this.#draw(); } });
    this.tree = h("ul", { class: "tree", role: "tree", "aria-label": "Tables", onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) });
    this.note = h("p", { class: "side-note muted" });
    this.parts = [
      h("div", { class: "side-head" }, this.filter, iconButton("refresh", "Read the tables again", () => this.refresh(true))),
      this.tree, this.note,
    ];
  }

  /**
   * Reads the list of tables, and again the columns of those that are open.
   *
   * @param {boolean} [columns] forget all columns read before
   */
  async refresh(columns = false) {
    try {
      this.show((await fetchTables()).namespaces, columns);
    } catch (error) {
      this.note.textContent = error instanceof ApiError ? error.message : String(error);
    }
  }

  /**
   * Shows a list of tables, and reads the columns of those that are open again if it is another one than before.
   *
   * @param {Namespace[]} namespaces
   * @param {boolean} [columns] forget all columns read before, in any case
   */
  show(namespaces, columns = false) {
    const text = JSON.stringify(namespaces);
    if (text === this.#shown && !columns) return;
    this.#shown = text;
    this.#namespaces = namespaces;
    this.#details.clear();
    this.actions.changed();
    const isEmpty = namespaces.every((namespace) => namespace.tables.length === 0);
    this.actions.empty(isEmpty);
    this.note.textContent = !isEmpty ? "" : "No tables yet. Load a file with: stoa load FILE --into TABLE --create";
    this.#draw();
    for (const key of this.#open) this.#read(key);
  }

  #draw() {
    const focused = this.tree.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset["key"] : undefined;
    const words = this.filter.value.trim().toLowerCase();
    const groups = this.#namespaces.map(({ name, tables }) => {
      const found = tables.filter((table) => `${name}.${table.name}`.toLowerCase().includes(words));
      return words !== "" && found.length === 0 ? null : this.#namespace(name, found);
    });
    this.tree.replaceChildren(...groups.filter((group) => group !== null), this.#systemGroup(words));
    const items = this.#items();
    const current = items.find((item) => item.dataset["key"] === focused) ?? items[0];
    if (current) current.tabIndex = 0;
    if (focused !== undefined) current?.focus();
  }

  /**
   * @param {string} name
   * @param {TableSummary[]} tables
   */
  #namespace(name, tables) {
    // What is looked for is shown.
    const open = !this.#closed.has(name) || this.filter.value.trim() !== "";
    return h("li", { class: "namespace", role: "none" },
      this.#namespaceRow(name, open, count(tables.length)),
      open && h("ul", { role: "group" }, ...this.#part(name, tables)));
  }

  /**
   * Some of the tables of a namespace, and items that lead to the others.
   *
   * @param {string} name
   * @param {TableSummary[]} tables
   */
  #part(name, tables) {
    const from = Math.min(this.#from.get(name) ?? 0, Math.floor(Math.max(0, tables.length - 1) / ITEMS_MAX) * ITEMS_MAX);
    const to = Math.min(from + ITEMS_MAX, tables.length);
    const more = (/** @type {number} */ at, /** @type {string} */ text) => h("li", { role: "none" },
      h("div", { class: "table-name more", role: "treeitem", "aria-level": "2", tabindex: "-1", "data-key": `${name} ${text}`, "data-from": at, onclick: () => this.#showFrom(name, at) },
        h("span", { class: "name muted" }, text)));
    return [
      from > 0 && more(from - ITEMS_MAX, `${count(from)} before these`),
      ...tables.slice(from, to).map((table) => this.#table(name, table)),
      to < tables.length && more(to, `${count(tables.length - to)} more of ${count(tables.length)}`),
    ];
  }

  /**
   * @param {string} name
   * @param {number} from
   */
  #showFrom(name, from) {
    this.#from.set(name, from);
    this.#draw();
    const group = [...this.tree.querySelectorAll(".namespace-name")].find((row) => /** @type {HTMLElement} */ (row).dataset["key"] === name);
    const first = /** @type {HTMLElement | null} */ (group?.parentElement?.querySelector(".table-name:not(.more)"));
    const items = this.#items();
    if (first) this.#focus(items, items.indexOf(first));
  }

  /**
   * @param {string} name
   * @param {boolean} open
   * @param {string} note
   */
  #namespaceRow(name, open, note) {
    return h("div", { class: "namespace-name", role: "treeitem", "aria-expanded": String(open), "aria-level": "1", tabindex: "-1", "data-key": name, title: name, onclick: () => this.#toggleNamespace(name) },
      h("span", { class: open ? "twist open" : "twist" }, icon("chevron")), h("span", { class: "name" }, name), h("span", { class: "muted tabular" }, note));
  }

  /** @param {string} name */
  #toggleNamespace(name) {
    if (!this.#closed.delete(name)) this.#closed.add(name);
    if (name === SYSTEM && this.#system === null) this.#readSystem();
    this.#draw();
  }

  async #readSystem() {
    try {
      const { rows } = await runSql({ sql: SYSTEM_COLUMNS, parameters: [] }, { maxRows: 5000 });
      /** @type {Map<string, SystemTable>} */
      const found = new Map();
      for (const [table, name, type] of /** @type {[string, string, string][]} */ (rows)) {
        const one = found.get(table) ?? { name: table, columns: [] };
        one.columns.push({ name, type });
        found.set(table, one);
      }
      this.#system = [...found.values()];
    } catch (error) {
      this.#system = error instanceof ApiError ? error.message : String(error);
    }
    this.#draw();
  }

  /**
   * The server's own tables.
   *
   * @param {string} words that they are filtered by
   */
  #systemGroup(words) {
    const all = this.#system;
    const found = Array.isArray(all) ? all.filter((table) => `${SYSTEM}.${table.name}`.includes(words)) : [];
    const open = Array.isArray(all) && words !== "" ? found.length > 0 : !this.#closed.has(SYSTEM);
    const inside = typeof all === "string" ? h("div", { class: "inside bad" }, all) : all === null ? h("div", { class: "inside muted" }, "…")
      : h("ul", { role: "group" }, ...found.map((table) => this.#systemTable(table)));
    return h("li", { class: "namespace", role: "none" },
      this.#namespaceRow(SYSTEM, open, Array.isArray(all) ? count(found.length) : ""), open && inside);
  }

  /** @param {SystemTable} table */
  #systemTable({ name, columns }) {
    const key = `${SYSTEM}.${name}`;
    const open = this.#open.has(key);
    const row = h("div", {
      class: "table-name", role: "treeitem", "aria-expanded": String(open), "aria-level": "2", tabindex: "-1", "data-key": key, title: key, onclick: () => this.#toggle(key),
    },
      h("span", { class: open ? "twist open" : "twist" }, icon("chevron")), h("span", { class: "name" }, name),
      h("span", { class: "row-actions" }, this.#action("play", `First rows of ${key}`, () => this.actions.preview(SYSTEM, name))));
    return h("li", { role: "none" }, row, open && h("div", { class: "inside" }, this.#columns(key, columns.map((column) => ({ ...column, comment: null, nullable: true })))));
  }

  /**
   * @param {string} key of the table
   * @param {{ name: string, type: string, comment: string | null, nullable: boolean }[]} columns
   */
  #columns(key, columns) {
    const left = columns.length - ITEMS_MAX;
    return h("ul", { class: "columns", role: "group" }, ...columns.slice(0, ITEMS_MAX).map((column) => h("li", { role: "none" },
      h("div", {
        role: "treeitem", "aria-level": "3", tabindex: "-1", "data-key": `${key}.${column.name}`,
        title: `${column.name} ${column.type}${column.nullable ? "" : " NOT NULL"}${column.comment === null ? "" : `\n${column.comment}`}`,
        ondblclick: () => this.actions.insert(quoted(column.name)),
      }, h("span", { class: "name" }, column.name), h("span", { class: "type" }, column.type)))),
      left > 0 && h("li", { class: "muted", role: "none" }, `and ${count(left)} more: see “About” of the table`));
  }

  /**
   * @param {string} namespace
   * @param {TableSummary} table
   */
  #table(namespace, table) {
    const key = `${namespace}.${table.name}`;
    const open = this.#open.has(key);
    const row = h("div", {
      class: "table-name", role: "treeitem", "aria-expanded": String(open), "aria-level": "2", tabindex: "-1",
      "data-key": key, title: tableTitle(key, table), onclick: () => this.#toggle(key),
    },
      h("span", { class: open ? "twist open" : "twist" }, icon("chevron")), h("span", { class: "name" }, table.name),
      h("span", { class: "size tabular" }, table.rows === null ? "" : short(table.rows)),
      h("span", { class: "row-actions" },
        this.#action("play", `First rows of ${key}`, () => this.actions.preview(namespace, table.name)),
        this.#action("info", `About ${key}`, () => this.actions.details(namespace, table.name))));
    return h("li", { role: "none" }, row, open && this.#inside(key, namespace, table));
  }

  /**
   * @param {import("./dom.js").IconName} name
   * @param {string} label
   * @param {() => void} act
   */
  #action(name, label, act) {
    const button = iconButton(name, label, (event) => {
      event.stopPropagation();
      act();
    });
    button.tabIndex = -1;
    return button;
  }

  /**
   * @param {string} key
   * @param {string} namespace
   * @param {TableSummary} table
   */
  #inside(key, namespace, table) {
    const details = this.#details.get(key);
    if (details === undefined) return h("div", { class: "inside muted" }, "…");
    if (typeof details === "string") return h("div", { class: "inside bad" }, details);
    const facts = [
      table.rows !== null && plural(table.rows, "row"),
      table.bytes !== null && bytes(table.bytes),
      table.files !== null && plural(table.files, "file"),
    ].filter(Boolean);
    return h("div", { class: "inside" },
      h("button", { type: "button", class: "inside-facts", tabindex: "-1", title: "About this table", onclick: () => this.actions.details(namespace, table.name) },
        h("span", {}, facts.join(" · ")),
        table.partitioned_by.length > 0 && h("span", {}, `partitioned by ${table.partitioned_by.join(", ")}`),
        table.sorted_by.length > 0 && h("span", {}, `sorted by ${sortOrder(table.sorted_by)}`)),
      this.#columns(key, details.columns));
  }

  /** @param {string} key */
  #toggle(key) {
    if (this.#open.delete(key)) return this.#draw();
    this.#open.add(key);
    this.#draw();
    this.#read(key);
  }

  /** @param {string} key */
  async #read(key) {
    if (this.#details.has(key)) return;
    const found = this.#namespaces.flatMap(({ name, tables }) => tables.map((table) => [name, table.name]))
      .find(([namespace, table]) => `${namespace}.${table}` === key);
    const [namespace, table] = found ?? [];
    if (namespace === undefined || table === undefined) return;
    try {
      this.#details.set(key, await fetchTable(namespace, table));
    } catch (error) {
      this.#details.set(key, error instanceof ApiError ? error.message : String(error));
    }
    this.#draw();
  }

  #items() {
    return /** @type {HTMLElement[]} */ ([...this.tree.querySelectorAll("[role=treeitem]")]);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const items = this.#items();
    const index = items.findIndex((item) => item === document.activeElement);
    const item = items[index];
    if (!item) return;
    const key = item.dataset["key"] ?? "";
    const isMore = item.classList.contains("more");
    const isTable = item.classList.contains("table-name") && !isMore;
    const isNamespace = level(item) === 1;
    const open = item.getAttribute("aria-expanded") === "true";
    if (event.key === "ArrowDown") this.#focus(items, index + 1);
    else if (event.key === "ArrowUp") this.#focus(items, index - 1);
    else if (event.key === "Home") this.#focus(items, 0);
    else if (event.key === "End") this.#focus(items, items.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && isMore) item.click();
    else if (event.key === "ArrowRight" && isNamespace && !open) this.#toggleNamespace(key);
    else if (event.key === "ArrowLeft" && isNamespace && open) this.#toggleNamespace(key);
    else if ((event.key === "Enter" || event.key === " ") && isNamespace) this.#toggleNamespace(key);
    else if (event.key === "ArrowRight" && isTable && !open) this.#toggle(key);
    else if (event.key === "ArrowRight") this.#focus(items, index + 1);
    else if (event.key === "ArrowLeft" && isTable && open) this.#toggle(key);
    else if (event.key === "ArrowLeft") this.#focus(items, items.findLastIndex((other, place) => place < index && level(other) < level(item)));
    else if (event.key === "Enter" && isTable) /** @type {HTMLElement | null} */ (item.querySelector("button"))?.click();
    else if (event.key === "Enter" && level(item) === 3) this.actions.insert(quoted(key.slice(key.lastIndexOf(".") + 1)));
    else if (event.key === " " && isTable) this.#toggle(key);
    else return;
    event.preventDefault();
  }

  /**
   * @param {HTMLElement[]} items
   * @param {number} index
   */
  #focus(items, index) {
    const item = items[index];
    if (!item) return;
    for (const other of items) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }
}

/** @param {HTMLElement} item */
function level(item) {
  return Number(item.getAttribute("aria-level"));
}

/**
 * @param {string} key
 * @param {TableSummary} table
 */
function tableTitle(key, table) {
  const facts = [key];
  if (table.comment) facts.push(table.comment);
  if (table.rows !== null) facts.push(plural(table.rows, "row"));
  if (table.bytes !== null) facts.push(bytes(table.bytes));
  return facts.join("\n");
}
