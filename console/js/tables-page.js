// Tables: all of them, and of one its facts, its files with how well they are sorted, its snapshots.

import { ApiError, table as fetchTable, tableFiles } from "./api.js";
import { ColumnStatisticsView, statisticsStatement } from "./column-statistics.js";
import { createTable, takeFiles, uploadFile } from "./create-table.js";
import { columns, facts, properties, snapshots } from "./details.js";
import { h, icon, setText } from "./dom.js";
import { ago, bytes, count, dateTime, sizesOf, sortOrder } from "./format.js";
import { Listing } from "./listing.js";
import { showSql } from "./show-sql.js";
import { sizeChart } from "./size-chart.js";
import { qualified } from "./sql-names.js";
import { TABLES, tableStatements } from "./statements.js";
import { compactTable, dropTable, expireSnapshots, renameTable, rollBack } from "./table-dialogs.js";
import { filesSection } from "./table-files.js";

/** @typedef {import("./api.js").Namespace} Namespace */
/** @typedef {import("./api.js").TableSummary} TableSummary */
/** @typedef {import("./api.js").TableDetails} TableDetails */
/** @typedef {import("./api.js").TableFiles} TableFiles */
/** @typedef {TableSummary & { namespace: string }} Entry */

/** @typedef {"overview" | "statistics" | "files" | "snapshots"} Section */

/**
 * @typedef {import("./show-sql.js").SqlActions & { open: (namespace: string, table: string) => void, close: () => void,
 *   preview: (namespace: string, table: string) => void, refresh: () => void }} TablesPageActions
 */

/** Snapshots that are asked for; of more, the rest is in SHOW SNAPSHOTS. */
const SNAPSHOTS_MAX = 10_000;
const SECTIONS = /** @type {const} */ ([["overview", "Overview"], ["statistics", "Statistics"], ["files", "Files"], ["snapshots", "Snapshots"]]);

export class TablesPage {
  /** @type {Entry[]} */
  #all = [];
  #open = "";
  /** @type {Section} */
  #section = "overview";
  /** What the table was when its details were read: they are read again after a change. */
  #read = "";
  /** @type {{ details: TableDetails, files: TableFiles | string } | null} */
  #shown = null;
  /** @type {string[]} */
  #namespaces = [];
  /** @type {ColumnStatisticsView | null} */
  #statistics = null;

  /** @param {TablesPageActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.listing = new Listing({
      label: "Tables", key: keyOf, empty: "No tables yet. Drop a file here (CSV, TSV, NDJSON, Parquet), or choose Create.",
      columns: entryColumns(), sort: { name: "bytes", down: true },
      open: (entry) => (keyOf(entry) === this.#open ? actions.close() : actions.open(entry.namespace, entry.name)),
    });
    this.counts = h("span", { class: "muted tabular" });
    this.filter = h("input", { type: "search", placeholder: "Filter tables", "aria-label": "Filter of the list", oninput: () => this.#list() });
    this.details = h("aside", { class: "page-details roomy", "aria-label": "Table", hidden: true });
    const sql = showSql("Tables", () => TABLES, actions);
    /** @type {import("./create-table.js").CreateActions} */
    const create = {
      namespaces: () => (this.#namespaces.length === 0 ? ["public"] : this.#namespaces),
      has: ({ namespace, name }) => this.#all.some((entry) => entry.namespace === namespace && entry.name === name),
      notify: actions.notify,
      changed: ({ namespace, name }) => { actions.refresh(); actions.open(namespace, name); },
    };
    const file = h("input", { type: "file", hidden: true, "aria-label": "File to load", onchange: () => { const chosen = file.files?.[0]; file.value = ""; if (chosen) uploadFile(chosen, create); } });
    const made = [
      h("button", { type: "button", class: "quiet", onclick: () => createTable(create) }, icon("plus"), "Create"),
      h("button", { type: "button", class: "quiet", title: "CSV, TSV, NDJSON or Parquet; or drop it on this page", onclick: () => file.click() }, icon("upload"), "Load a file"),
    ];
    this.element = h("main", {
      class: "page split", "aria-label": "Tables", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#open !== "" && actions.close(),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "All tables" }, h("h2", {}, "Tables", this.filter, this.counts, h("span", { class: "spring" }), ...made, file, sql.button), sql.panel, this.listing.element)),
      this.details);
    takeFiles(this.element, (dropped) => uploadFile(dropped, create));
  }

  /** @param {Namespace[]} namespaces */
  showTables(namespaces) {
    this.#namespaces = namespaces.map(({ name }) => name);
    this.#all = namespaces.flatMap(({ name, tables }) => tables.map((table) => ({ ...table, namespace: name })));
    this.#list();
    this.#readAgain();
  }

  /** Those that the filter leaves. */
  #list() {
    const words = this.filter.value.trim().toLowerCase();
    const found = this.#all.filter((entry) => keyOf(entry).toLowerCase().includes(words));
    const total = found.reduce((sum, entry) => sum + (entry.bytes ?? 0), 0);
    const of = found.length === this.#all.length ? "" : ` of ${count(this.#all.length)}`;
    setText(this.counts, `${count(found.length)}${of} ${found.length === 1 && of === "" ? "table" : "tables"}, ${bytes(total)}`);
    this.listing.show(found);
  }

  /**
   * Shows one table beside the list.
   *
   * @param {string[]} place namespace and name; nothing closes
   */
  show([namespace = "", name = ""]) {
    const open = name === "" ? "" : `${namespace}.${name}`;
    if (open === this.#open) return;
    this.#open = open;
    this.#read = "";
    this.#shown = null;
    this.#statistics?.stop();
    this.#statistics = null;
    this.listing.mark(open);
    this.details.hidden = open === "";
    this.details.replaceChildren();
    if (open !== "") this.#readDetails(namespace, name);
  }

  #readAgain() {
    const entry = this.#all.find((candidate) => keyOf(candidate) === this.#open);
    if (!entry) return;
    const text = JSON.stringify([entry.committed_unix_ms, entry.rows, entry.fresh_rows]);
    if (this.#read !== "" && this.#read !== text) this.#readDetails(entry.namespace, entry.name);
    this.#read = text;
  }

  /**
   * @param {string} namespace
   * @param {string} name
   */
  async #readDetails(namespace, name) {
    const key = `${namespace}.${name}`;
    try {
      const [details, files] = await Promise.all([fetchTable(namespace, name, SNAPSHOTS_MAX), tableFiles(namespace, name).catch(messageOf)]);
      if (this.#open !== key) return;
      this.#shown = { details, files };
      this.#draw();
    } catch (error) {
      if (this.#open === key) this.details.replaceChildren(this.#header(namespace, name), h("p", { class: "bad" }, messageOf(error)));
    }
  }

  /** @param {Section} section */
  #choose(section) {
    this.#section = section;
    this.#draw();
    /** @type {HTMLElement | null} */ (this.details.querySelector(`[data-action="${section}"]`))?.focus();
  }

  #draw() {
    if (!this.#shown) return;
    const { details, files } = this.#shown;
    const focused = /** @type {HTMLElement | null} */ (this.details.contains(document.activeElement) ? document.activeElement : null)?.dataset["action"];
    const scrolled = this.details.scrollTop;
    const choices = SECTIONS.map(([name, label]) => h("button", {
      type: "button", class: "quiet", "data-action": name, "aria-pressed": String(name === this.#section), onclick: () => this.#choose(name),
    }, label));
    const table = qualified(details.namespace, details.name);
    const statement = () => (this.#section === "statistics" ? statisticsStatement(table, details.columns) : tableStatements(table)[this.#section]);
    const sql = showSql(`${details.name} ${this.#section}`, statement, this.actions);
    this.details.replaceChildren(
      this.#header(details.namespace, details.name), this.#changes(details),
      h("div", { class: "page-actions" }, h("span", { class: "segments", role: "group", "aria-label": "What of the table" }, ...choices), h("span", { class: "spring" }), sql.button),
      sql.panel, ...this.#sectionOf(details, files));
    this.details.scrollTop = scrolled;
    if (focused) /** @type {HTMLElement | null} */ (this.details.querySelector(`[data-action="${focused}"]`))?.focus();
  }

  /**
   * @param {TableDetails} details
   * @param {TableFiles | string} files
   * @returns {Node[]}
   */
  #sectionOf(details, files) {
    if (this.#section === "statistics") {
      this.#statistics ??= new ColumnStatisticsView({ table: qualified(details.namespace, details.name), columns: details.columns });
      return [this.#statistics.element];
    }
    if (this.#section === "snapshots") return this.#snapshots(details);
    if (this.#section === "files") return typeof files === "string" ? [h("p", { class: "bad" }, files)] : filesSection(files, details);
    const comment = details.comment === null ? [] : [h("p", { class: "comment" }, details.comment)];
    return [...comment, facts(details), h("h3", {}, "Columns"), columns(details), h("h3", {}, "Properties"), properties(details.properties)];
  }

  /** @param {TableDetails} details */
  #snapshots(details) {
    const { namespace, name } = details;
    const list = snapshots(details.snapshots, {
      look: ({ id }) => this.actions.openSql(`SELECT *\nFROM ${qualified(namespace, name)} FOR VERSION AS OF ${id}\nLIMIT 100`, `${name} at ${id}`),
      rollBack: (snapshot) => rollBack({ namespace, name }, snapshot, this.#changing()),
    });
    const sizes = details.snapshots.toReversed().flatMap(({ committed_unix_ms, summary }) => {
      const size = Number(summary["total-files-size"]);
      const rows = Number(summary["total-records"]);
      return Number.isFinite(size) ? [{ label: dateTime(committed_unix_ms), bytes: size, rows: Number.isFinite(rows) ? rows : null }] : [];
    });
    const left = details.snapshots.length < details.snapshots_total ? [h("p", { class: "muted" }, `The newest ${count(details.snapshots.length)} of ${count(details.snapshots_total)} snapshots are listed.`)] : [];
    return sizes.length < 2 ? [list, ...left] : [h("h3", {}, "Size after each commit"), sizeChart("Size after each commit", sizes, "last"), list, ...left];
  }

  /** What follows a change. @returns {import("./table-dialogs.js").TableDialogActions} */
  #changing() {
    return {
      notify: this.actions.notify,
      changed: (now) => {
        this.actions.refresh();
        if (now === null) return this.actions.close();
        if (`${now.namespace}.${now.name}` === this.#open) this.#readDetails(now.namespace, now.name);
        else this.actions.open(now.namespace, now.name);
      },
    };
  }

  /** @param {TableDetails} details */
  #changes({ namespace, name, rows }) {
    const place = { namespace, name };
    const choices = /** @type {const} */ ([
      ["Rename", () => renameTable(place, this.#changing())], ["Compact", () => compactTable(place, this.#changing())],
      ["Expire snapshots", () => expireSnapshots(place, this.#changing())], ["Drop", () => dropTable({ ...place, rows }, this.#changing())],
    ]);
    return h("div", { class: "page-actions table-actions", role: "group", "aria-label": "Change the table" },
      ...choices.map(([label, act]) => h("button", { type: "button", class: label === "Drop" ? "danger" : false, "data-action": label, onclick: act }, label)));
  }

  /**
   * @param {string} namespace
   * @param {string} name
   */
  #header(namespace, name) {
    return h("header", {}, h("h2", {}, h("span", { class: "muted" }, `${namespace}.`), name),
      h("button", { type: "button", class: "quiet", "data-action": "preview", onclick: () => this.actions.preview(namespace, name) }, icon("play"), "First rows"),
      h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close (Esc)", "data-action": "close", onclick: this.actions.close }, icon("close")));
  }
}

/** @param {Entry} entry */
function keyOf(entry) {
  return `${entry.namespace}.${entry.name}`;
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof ApiError ? error.message : String(error);
}

/** @returns {import("./listing.js").Column<Entry>[]} */
function entryColumns() {
  const number = (/** @type {number | null} */ value, /** @type {(value: number) => string} */ format) => (value === null ? "–" : format(value));
  const average = (/** @type {Entry} */ entry) => (entry.files ? (entry.bytes ?? 0) / entry.files : 0);
  return [
    { name: "name", label: "Table", value: keyOf },
    { name: "rows", label: "Rows", numeric: true, value: (entry) => entry.rows ?? -1, text: (entry) => number(entry.rows, count) },
    { spare: true, name: "fresh_rows", label: "Fresh", title: "Rows in the commit log and not yet in files", numeric: true, value: (entry) => entry.fresh_rows ?? 0, text: (entry) => (entry.fresh_rows ? count(entry.fresh_rows) : "–") },
    { name: "bytes", label: "Size", numeric: true, value: (entry) => entry.bytes ?? -1, unit: sizesOf, text: (entry, inUnit) => number(entry.bytes, inUnit) },
    { name: "files", label: "Files", numeric: true, value: (entry) => entry.files ?? -1, text: (entry) => number(entry.files, count) },
    { spare: true, name: "average", label: "File size", title: "Size of a file on average", numeric: true, unit: sizesOf, value: average, text: (entry, inUnit) => (entry.files ? inUnit(average(entry)) : "–") },
    { spare: true, name: "partitioned_by", label: "Partitioned by", value: (entry) => entry.partitioned_by.join(", ") || "–" },
    { spare: true, name: "sorted_by", label: "Sorted by", value: (entry) => sortOrder(entry.sorted_by) || "–" },
    { spare: true, name: "committed", label: "Last commit", numeric: true, value: (entry) => entry.committed_unix_ms ?? 0, text: (entry) => (entry.committed_unix_ms === null ? "–" : ago(Date.now() - entry.committed_unix_ms)) },
  ];
}
