// Statistics of a table's columns: one statement that reads them all, run when somebody asks for it.

import { runSql } from "./api.js";
import { h } from "./dom.js";
import { count, percent } from "./format.js";
import { Listing } from "./listing.js";
import { describe } from "./sql-dialog.js";
import { literal, quoted } from "./sql-names.js";

/** @typedef {import("./api.js").TableColumn} TableColumn */
/** @typedef {{ name: string, rows: number, nulls: number, values: number | null, least: string | null, greatest: string | null }} ColumnStatistics */

const COLUMNS_MAX = 100;

/**
 * What gives the statistics: a row for each column.
 *
 * @param {string} table as SQL writes it
 * @param {TableColumn[]} columns
 */
export function statisticsStatement(table, columns) {
  const parts = columns.slice(0, COLUMNS_MAX).map(({ name, type }) => {
    const column = quoted(name);
    const isNested = /^(array|list|map|struct|row)\b|\[\]$/i.test(type);
    // Sketches of distinct values are not made of floating-point numbers.
    const values = isNested ? "NULL::bigint" : `approx_distinct(${/^(real|double|float)/i.test(type) ? `${column}::text` : column})::bigint`;
    const bound = (/** @type {string} */ of) => (isNested || /^(bytea|binary)/i.test(type) ? "NULL::text" : `${of}(${column})::text`);
    return `SELECT ${literal(name)} AS column_name, count(*) AS rows, count(*) - count(${column}) AS nulls,\n       ${values} AS distinct_values, ${bound("min")} AS least, ${bound("max")} AS greatest\nFROM ${table}`;
  });
  return `-- Distinct values are estimates.\n${parts.join("\nUNION ALL\n")}`;
}

/** Shows them, after a button was pressed: it may take a while. */
export class ColumnStatisticsView {
  /** @param {{ table: string, columns: TableColumn[] }} of */
  constructor({ table, columns }) {
    this.of = { table, columns };
    /** @type {AbortController | null} */
    this.reading = null;
    this.button = h("button", { type: "button", class: "primary", "data-action": "read-statistics", onclick: () => this.#read() }, "Read the table");
    this.result = h("div", {});
    this.element = h("div", { class: "statistics" },
      h("p", { class: "muted" }, "Nulls, distinct values, least and greatest of each column. The whole table is read for it, in a query that you find on the page Queries."),
      h("div", { class: "page-actions" }, this.button),
      columns.length > COLUMNS_MAX && h("p", { class: "muted" }, `Of the first ${COLUMNS_MAX} of ${columns.length} columns.`), this.result);
  }

  /** Whoever looks at something else waits for it no more. */
  stop() {
    this.reading?.abort();
  }

  async #read() {
    const controller = new AbortController();
    this.reading = controller;
    this.button.disabled = true;
    this.button.textContent = "Reading…";
    try {
      const { rows } = await runSql({ sql: statisticsStatement(this.of.table, this.of.columns), parameters: [] }, { maxRows: COLUMNS_MAX, signal: controller.signal });
      this.result.replaceChildren(listingOf(/** @type {unknown[][]} */ (rows), this.of.columns));
    } catch (error) {
      if (!controller.signal.aborted) this.result.replaceChildren(...describe(error));
    }
    this.button.disabled = false;
    this.button.textContent = "Read it again";
  }
}

/**
 * @param {unknown[][]} rows of the statement, in any order
 * @param {TableColumn[]} columns
 */
function listingOf(rows, columns) {
  const place = new Map(columns.map(({ name }, index) => [name, index]));
  const text = (/** @type {unknown} */ value) => (value === null ? null : String(value));
  const all = rows.map(([name, count, nulls, values, least, greatest]) => ({
    name: String(name), rows: Number(count), nulls: Number(nulls), values: values === null ? null : Number(values), least: text(least), greatest: text(greatest),
  })).sort((a, b) => (place.get(a.name) ?? 0) - (place.get(b.name) ?? 0));
  const listing = new Listing({
    label: "Column statistics", key: (/** @type {ColumnStatistics} */ row) => row.name, empty: "No columns.", open: () => {},
    columns: [
      { name: "column", label: "Column", value: (row) => row.name },
      { name: "nulls", label: "Nulls", numeric: true, value: (row) => row.nulls, text: (row) => (row.nulls === 0 ? "none" : `${count(row.nulls)} (${percent(row.nulls / Math.max(row.rows, 1))})`) },
      { name: "values", label: "Distinct", title: "Distinct values, estimated", numeric: true, value: (row) => row.values ?? -1, text: (row) => (row.values === null ? "–" : `≈ ${count(row.values)}`) },
      { name: "least", label: "Least", value: (row) => row.least ?? "", paint: (cell, row) => paintBound(cell, row.least) },
      { name: "greatest", label: "Greatest", value: (row) => row.greatest ?? "", paint: (cell, row) => paintBound(cell, row.greatest) },
    ],
  });
  listing.show(all);
  return listing.element;
}

/**
 * @param {HTMLElement} cell
 * @param {string | null} value
 */
function paintBound(cell, value) {
  cell.textContent = value === null ? "–" : value.length > 40 ? `${value.slice(0, 39)}…` : value;
  cell.title = value ?? "";
}
