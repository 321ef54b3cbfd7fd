// Tables: all of them, and of one its facts, its files with how well they are sorted, its snapshots.

import { ApiError, table as fetchTable, tableFiles } from "./api.js";
import { columns, facts, factsList, properties, snapshots } from "./details.js";
import { h, icon, setText } from "./dom.js";
import { ago, bytes, count, percent, plural, sortOrder } from "./format.js";
import { Listing } from "./listing.js";
import { showSql } from "./show-sql.js";
import { TABLES, tableStatements } from "./statements.js";
import { qualified } from "./tables.js";

/** @typedef {import("./api.js").Namespace} Namespace */
/** @typedef {import("./api.js").TableSummary} TableSummary */
/** @typedef {import("./api.js").TableDetails} TableDetails */
/** @typedef {import("./api.js").TableFiles} TableFiles */
/** @typedef {import("./api.js").DataFile} DataFile */
/** @typedef {import("./api.js").TablePartition} TablePartition */
/** @typedef {TableSummary & { namespace: string }} Entry */

/** @typedef {"overview" | "files" | "snapshots"} Section */

/**
 * @typedef {import("./show-sql.js").SqlActions & { open: (namespace: string, table: string) => void, close: () => void,
 *   preview: (namespace: string, table: string) => void }} TablesPageActions
 */

const SECTIONS = /** @type {const} */ ([["overview", "Overview"], ["files", "Files"], ["snapshots", "Snapshots"]]);

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

  /** @param {TablesPageActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.listing = new Listing({
      label: "Tables", key: keyOf, empty: "No tables yet. Load a file with: stoa load FILE --into TABLE --create",
      columns: entryColumns(), sort: { name: "bytes", down: true },
      open: (entry) => (keyOf(entry) === this.#open ? actions.close() : actions.open(entry.namespace, entry.name)),
    });
    this.counts = h("span", { class: "muted tabular" });
    this.filter = h("input", { type: "search", placeholder: "Filter tables", "aria-label": "Filter of the list", oninput: () => this.#list() });
    this.details = h("aside", { class: "page-details roomy", "aria-label": "Table", hidden: true });
    const sql = showSql("Tables", () => TABLES, actions);
    this.element = h("main", {
      class: "page split", "aria-label": "Tables", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#open !== "" && actions.close(),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "All tables" }, h("h2", {}, "Tables", this.filter, this.counts, h("span", { class: "spring" }), sql.button), sql.panel, this.listing.element)),
      this.details);
  }

  /** @param {Namespace[]} namespaces */
  showTables(namespaces) {
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
      const [details, files] = await Promise.all([fetchTable(namespace, name), tableFiles(namespace, name).catch(messageOf)]);
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
    const sql = showSql(`${details.name} ${this.#section}`, () => tableStatements(qualified(details.namespace, details.name))[this.#section], this.actions);
    this.details.replaceChildren(
      this.#header(details.namespace, details.name),
      h("div", { class: "page-actions" }, h("span", { class: "segments", role: "group", "aria-label": "What of the table" }, ...choices), h("span", { class: "spring" }), sql.button),
      sql.panel, ...sectionOf(this.#section, details, files, this.actions));
    this.details.scrollTop = scrolled;
    if (focused) /** @type {HTMLElement | null} */ (this.details.querySelector(`[data-action="${focused}"]`))?.focus();
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

/**
 * @param {Section} section
 * @param {TableDetails} details
 * @param {TableFiles | string} files
 * @param {TablesPageActions} actions
 * @returns {HTMLElement[]}
 */
function sectionOf(section, details, files, actions) {
  if (section === "snapshots") {
    const table = qualified(details.namespace, details.name);
    return [snapshots(details.snapshots, (id) => actions.openSql(`SELECT *\nFROM ${table} FOR VERSION AS OF ${id}\nLIMIT 100`, `${details.name} at ${id}`))];
  }
  if (section === "files") return typeof files === "string" ? [h("p", { class: "bad" }, files)] : filesSection(files, details);
  const comment = details.comment === null ? [] : [h("p", { class: "comment" }, details.comment)];
  return [...comment, facts(details), h("h3", {}, "Columns"), columns(details), h("h3", {}, "Properties"), properties(details.properties)];
}

/**
 * @param {TableFiles} files
 * @param {TableDetails} details
 */
function filesSection(files, details) {
  const listed = h("div", {});
  const list = (/** @type {string | null} */ partition) => {
    const rows = partition === null ? files.files : files.files.filter((file) => file.partition === partition);
    const listing = new Listing({ label: "Data files", key: (/** @type {DataFile} */ file) => file.path, empty: "No file is listed.", columns: fileColumns(files.columns, partition === null && files.partitions.length > 1), open: () => {} });
    listing.show(rows);
    listed.replaceChildren(
      h("h3", {}, partition === null ? "Files" : `Files of ${partition}`),
      listing.element,
      files.files.length < files.files_total ? h("p", { class: "muted" }, `The first ${count(files.files.length)} of ${count(files.files_total)} files are listed; sums are of all.`) : "");
  };
  list(null);
  const parts = [factsList([
    ["Files", `${count(files.files_total)}, ${bytes(files.bytes)}${files.files_total > 0 ? `, ${bytes(files.bytes / files.files_total)} each on average` : ""}`],
    ["Rows in files", count(files.rows)],
    ["Fresh rows", count(details.fresh_rows)],
    ...sortQuality(files),
  ])];
  return files.partitions.length > 1 ? [...parts, h("h3", {}, "Table partitions"), partitionListing(files, list), listed] : [...parts, listed];
}

/**
 * @param {TableFiles} files
 * @returns {[string, string][]}
 */
function sortQuality({ sort }) {
  if (sort === null) return [["Sort quality", "nothing to compare: no sort order, or no bounds of its first column"]];
  const { compared, overlapping, depth_mean, depth_max } = sort;
  return [
    ["Sort quality", overlapping === 0 ? `all ${plural(compared, "file")} apart: a key of a partition is in one file` : `${count(overlapping)} of ${plural(compared, "file")} overlap (${percent(overlapping / compared)})`],
    ["Overlap depth", `${depth_mean.toFixed(depth_mean === depth_max ? 0 : 2)} on average, ${count(depth_max)} at most: files to read for one key`],
  ];
}

/**
 * @param {TableFiles} files
 * @param {(partition: string | null) => void} list
 */
function partitionListing(files, list) {
  let open = "";
  const listing = new Listing({
    label: "Table partitions", key: (/** @type {TablePartition} */ row) => row.partition, empty: "None.",
    columns: partitionColumns(),
    open: (row) => {
      open = open === row.partition ? "" : row.partition;
      listing.mark(open);
      list(open === "" ? null : open);
    },
  });
  listing.show(files.partitions);
  return listing.element;
}

/** @returns {import("./listing.js").Column<Entry>[]} */
function entryColumns() {
  const number = (/** @type {number | null} */ value, /** @type {(value: number) => string} */ format) => (value === null ? "–" : format(value));
  const average = (/** @type {Entry} */ entry) => (entry.files ? (entry.bytes ?? 0) / entry.files : 0);
  return [
    { name: "name", label: "Table", value: keyOf },
    { name: "rows", label: "Rows", numeric: true, value: (entry) => entry.rows ?? -1, text: (entry) => number(entry.rows, count) },
    { spare: true, name: "fresh_rows", label: "Fresh", title: "Rows in the commit log and not yet in files", numeric: true, value: (entry) => entry.fresh_rows ?? 0, text: (entry) => (entry.fresh_rows ? count(entry.fresh_rows) : "–") },
    { name: "bytes", label: "Size", numeric: true, value: (entry) => entry.bytes ?? -1, text: (entry) => number(entry.bytes, bytes) },
    { name: "files", label: "Files", numeric: true, value: (entry) => entry.files ?? -1, text: (entry) => number(entry.files, count) },
    { spare: true, name: "average", label: "File size", title: "Size of a file on average", numeric: true, value: average, text: (entry) => (entry.files ? bytes(average(entry)) : "–") },
    { spare: true, name: "partitioned_by", label: "Partitioned by", value: (entry) => entry.partitioned_by.join(", ") || "–" },
    { spare: true, name: "sorted_by", label: "Sorted by", value: (entry) => sortOrder(entry.sorted_by) || "–" },
    { spare: true, name: "committed", label: "Last commit", numeric: true, value: (entry) => entry.committed_unix_ms ?? 0, text: (entry) => (entry.committed_unix_ms === null ? "–" : ago(Date.now() - entry.committed_unix_ms)) },
  ];
}

/** @returns {import("./listing.js").Column<TablePartition>[]} */
function partitionColumns() {
  return [
    { name: "partition", label: "Partition", value: (row) => row.partition },
    { name: "files", label: "Files", numeric: true, value: (row) => row.files, text: (row) => count(row.files) },
    { name: "rows", label: "Rows", numeric: true, value: (row) => row.rows, text: (row) => count(row.rows) },
    { name: "bytes", label: "Size", numeric: true, value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
    { name: "overlapping", label: "Overlapping", title: "Files that share keys with another of the partition", numeric: true, value: (row) => row.overlapping, text: (row) => count(row.overlapping) },
    { name: "depth", label: "Depth", title: "Most files that hold one key", numeric: true, value: (row) => row.depth_max ?? 0, text: (row) => (row.depth_max === null ? "–" : count(row.depth_max)) },
  ];
}

/**
 * @param {string[]} bounds columns whose bounds are shown
 * @param {boolean} partitions whether the files are of several table partitions
 * @returns {import("./listing.js").Column<DataFile>[]}
 */
function fileColumns(bounds, partitions) {
  const ofColumn = (/** @type {DataFile} */ file, /** @type {string} */ column) => {
    const pair = file.bounds[column];
    return pair ? (pair[0] === pair[1] ? pair[0] : `${pair[0]} – ${pair[1]}`) : "–";
  };
  return [
    { name: "path", label: "File", value: (file) => file.path, paint: paintFile },
    ...(partitions ? [{ name: "partition", label: "Partition", value: (/** @type {DataFile} */ file) => file.partition }] : []),
    { name: "rows", label: "Rows", numeric: true, value: (file) => file.rows, text: (file) => count(file.rows) },
    { name: "bytes", label: "Size", numeric: true, value: (file) => file.bytes, text: (file) => bytes(file.bytes) },
    { name: "stripes", label: "Stripes", numeric: true, value: (file) => file.stripes ?? 0, text: (file) => (file.stripes === null ? "–" : count(file.stripes)) },
    { name: "sorted", label: "Sorted", title: "Whether its rows follow the table's order", value: (file) => (file.sorted ? "yes" : "no") },
    { name: "depth", label: "Depth", title: "Most files of its partition that hold one of its keys; 1 is best", numeric: true, value: (file) => file.depth ?? 0, text: (file) => (file.depth === null ? "–" : count(file.depth)) },
    ...bounds.map((column) => ({ name: `bounds ${column}`, label: column, title: `Least and greatest ${column}`, value: (/** @type {DataFile} */ file) => ofColumn(file, column) })),
  ];
}

/**
 * The file's name, its whole path as the title.
 *
 * @param {HTMLElement} cell
 * @param {DataFile} file
 */
function paintFile(cell, file) {
  setText(cell, file.path.slice(file.path.lastIndexOf("/") + 1).replace(/^(\d+-[^-]*).*(\.\w+)$/, "$1…$2"));
  cell.title = file.path;
}
