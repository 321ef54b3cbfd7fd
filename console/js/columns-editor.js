// The columns of a table that does not exist yet: names, types, and whether they may be NULL.

import { h, icon } from "./dom.js";
import { quoted } from "./sql-names.js";

/** @typedef {{ name: string, type: string, required?: boolean }} NewColumn */

const TYPES = ["bigint", "integer", "double precision", "decimal(18, 4)", "boolean", "text", "date", "timestamp", "timestamptz", "bytea"];

export class ColumnsEditor {
  /**
   * @param {NewColumn[]} columns
   * @param {{ isFixed?: boolean, hasNames?: boolean, changed: () => void }} options `isFixed`: they are those of a file, none can be added; `hasNames`: and
   *   their names stay
   */
  constructor(columns, { isFixed = false, hasNames = false, changed }) {
    this.hasNames = hasNames;
    this.changed = changed;
    this.types = h("datalist", { id: "column-types" }, ...TYPES.map((type) => h("option", { value: type })));
    this.body = h("tbody", {}, ...columns.map((column) => this.#row(column)));
    this.add = h("button", { type: "button", class: "quiet", hidden: isFixed, onclick: () => { this.body.append(this.#row({ name: "", type: "text" })); this.body.lastElementChild?.querySelector("input")?.focus(); changed(); } }, icon("plus"), "Add a column");
    this.element = h("div", { class: "columns-editor" }, this.types,
      h("div", { class: "columns-scroll" }, h("table", { class: "listing" },
        h("thead", {}, h("tr", {}, ...["Column", "Type", "NOT NULL"].map((head) => h("th", { scope: "col" }, head)), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Leave out")))), this.body)),
      this.add);
  }

  /** @param {NewColumn} column */
  #row({ name, type, required = false }) {
    const row = h("tr", { "data-column": name },
      h("td", {}, h("input", { class: "text", "aria-label": "Name of the column", value: name, readonly: this.hasNames, spellcheck: "false", autocomplete: "off" })),
      h("td", {}, h("input", { class: "text", "aria-label": `Type of ${name || "the column"}`, value: type, list: "column-types", spellcheck: "false", autocomplete: "off" })),
      h("td", {}, h("input", { type: "checkbox", "aria-label": `${name || "The column"} is NOT NULL`, checked: required })),
      h("td", {}, h("button", { type: "button", class: "icon-button", "aria-label": `Leave out ${name || "the column"}`, title: "Leave it out", onclick: () => { row.remove(); this.changed(); } }, icon("close"))));
    return row;
  }

  /**
   * What is left, with the name that each had first.
   *
   * @returns {(NewColumn & { was: string })[]}
   */
  get value() {
    return [...this.body.rows].map((row) => {
      const [name, type, required] = /** @type {HTMLInputElement[]} */ ([...row.querySelectorAll("input")]);
      return { was: row.dataset["column"] ?? "", name: name?.value.trim() ?? "", type: type?.value.trim() ?? "", required: required?.checked ?? false };
    });
  }
}

/**
 * What is missing before a table can be made of them; `null` where nothing is.
 *
 * @param {NewColumn[]} columns
 */
export function troubleOf(columns) {
  if (columns.length === 0) return "A table has at least one column.";
  const names = columns.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (names.includes("")) return "Each column needs a name.";
  if (twice !== undefined) return `Two columns are called ${twice}.`;
  const untyped = columns.find(({ type }) => type === "");
  return untyped ? `Column ${untyped.name} needs a type.` : null;
}

/**
 * @param {string} table as SQL writes it
 * @param {NewColumn[]} columns
 * @param {{ partitionedBy: string, orderedBy: string }} layout terms as SQL writes them; may be empty
 */
export function createStatement(table, columns, { partitionedBy, orderedBy }) {
  const lines = columns.map(({ name, type, required = false }) => `  ${quoted(name)} ${type}${required ? " NOT NULL" : ""}`);
  return [
    `CREATE TABLE ${table} (\n${lines.join(",\n")}\n)`,
    partitionedBy.trim() && `PARTITIONED BY (${partitionedBy.trim()})`, orderedBy.trim() && `ORDER BY (${orderedBy.trim()})`,
  ].filter(Boolean).join("\n");
}
