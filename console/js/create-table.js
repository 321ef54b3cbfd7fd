// New tables: of columns that are written down, or of a file, whose columns the server infers.

import { runSql } from "./api.js";
import { ColumnsEditor, createStatement, troubleOf } from "./columns-editor.js";
import { h } from "./dom.js";
import { bytes, count } from "./format.js";
import { describe, field, openSqlDialog } from "./sql-dialog.js";
import { literal, qualified } from "./sql-names.js";
import { columnsOfFile, uploadRows } from "./uploads.js";

/** @typedef {import("./uploads.js").FileColumns} FileColumns */
/** @typedef {import("./table-dialogs.js").Place} Place */
/** @typedef {{ namespaces: () => string[], has: (place: Place) => boolean, notify: (text: string) => void, changed: (now: Place) => void }} CreateActions */

/** @param {CreateActions} actions */
export function createTable(actions) {
  const { parts, place, layout } = placeFields(actions, "");
  const editor = new ColumnsEditor([{ name: "day", type: "date" }, { name: "account_id", type: "bigint" }, { name: "amount", type: "decimal(18, 4)" }], { changed: () => opened.update() });
  const opened = openSqlDialog({
    title: "Create a table", yes: "Create", wide: true,
    fields: [...parts, h("h3", {}, "Columns"), editor.element, ...layout.parts],
    statements: () => {
      const missing = place().name === "" ? "The table needs a name." : troubleOf(editor.value);
      return missing ?? [createStatement(qualified(place().namespace, place().name), editor.value, layout.value())];
    },
    done: () => { actions.notify(`${place().name} is created`); actions.changed(place()); },
  });
}

/**
 * Name and schema of a table, and how it is laid out.
 *
 * @param {CreateActions} actions
 * @param {string} name
 */
function placeFields({ namespaces }, name) {
  const input = h("input", { class: "text", value: name, autocomplete: "off", spellcheck: "false", "aria-label": "Table" });
  const schema = h("select", { "aria-label": "Schema" }, ...namespaces().map((each) => h("option", { value: each, selected: each === "public" }, each)));
  const partitionedBy = h("input", { class: "text", placeholder: "month(day)", autocomplete: "off", spellcheck: "false" });
  const orderedBy = h("input", { class: "text", placeholder: "account_id, day", autocomplete: "off", spellcheck: "false" });
  return {
    parts: [h("div", { class: "fields" }, field("Schema", schema), field("Table", input))],
    place: () => ({ namespace: schema.value, name: input.value.trim() }),
    layout: {
      parts: [h("div", { class: "fields" }, field("Partitioned by", partitionedBy), field("Ordered by", orderedBy))],
      value: () => ({ partitionedBy: partitionedBy.value, orderedBy: orderedBy.value }),
    },
  };
}

const DELIMITERS = /** @type {const} */ ([["", "as the format has it"], [",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"]]);

/**
 * Makes a table of a file, or adds its rows to one that is there.
 *
 * @param {File} file
 * @param {CreateActions} actions
 */
export async function uploadFile(file, actions) {
  /** @type {FileColumns} */
  let found;
  try {
    found = await columnsOfFile(file, {});
  } catch (error) {
    return openTrouble(file, error);
  }
  const isText = /^(csv|tsv|pgtext)$/.test(found.format);
  const { parts, place, layout } = placeFields(actions, nameOf(file.name));
  const header = h("input", { type: "checkbox", checked: true });
  const delimiter = h("select", { "aria-label": "Delimiter" }, ...DELIMITERS.map(([value, label]) => h("option", { value }, label)));
  const progress = h("progress", { "aria-label": "Share of the file that was sent", max: "1", value: "0", hidden: true });
  const sent = h("p", { class: "muted", role: "status" });
  const columns = h("div", {});
  const reading = h("div", { class: "fields" },
    h("label", { class: "check" }, header, "The first line has the names"), field("Delimiter", delimiter));
  reading.hidden = !isText;
  let editor = editorOf(found);
  const fresh = h("div", {}, h("h3", {}, "Columns"), columns, ...layout.parts);

  /** @param {FileColumns} of */
  function editorOf(of) {
    const made = new ColumnsEditor(of.columns, { isFixed: true, hasNames: !isText, changed: () => opened.update() });
    columns.replaceChildren(made.element);
    return made;
  }

  /** Options of the load, as the server takes them. */
  function options() {
    /** @type {Record<string, string>} */
    const all = { format: found.format };
    if (found.compression !== "none") all["compression"] = found.compression;
    if (!isText) return all;
    all["header"] = String(header.checked);
    if (delimiter.value !== "") all["delimiter"] = delimiter.value;
    return all;
  }

  function loadOptions() {
    const all = options();
    const kept = editor.value;
    const changed = kept.length < found.columns.length || kept.some(({ was, name }) => was !== name);
    if (isNew() && changed && isText) {
      all["columns"] = found.columns.map(({ name }) => kept.find(({ was }) => was === name)?.name ?? "-").join(",");
    } else if (isNew() && changed) {
      all["extra_columns"] = "ignore";
    }
    return all;
  }

  const isNew = () => !actions.has(place());

  async function again() {
    try {
      found = await columnsOfFile(file, options());
      editor = editorOf(found);
      opened.trouble.replaceChildren();
    } catch (error) {
      opened.trouble.replaceChildren(...describe(error));
    }
    opened.update();
  }
  for (const input of [header, delimiter]) input.addEventListener("change", again);

  /** Whether this dialog has made the table. */
  let isMade = false;
  const opened = openSqlDialog({
    title: `Load ${file.name}`, yes: "Load", wide: true,
    note: `${bytes(file.size)}, ${found.format}${found.compression === "none" ? "" : ` (${found.compression})`}. All rows are loaded, or none: if that fails, a table that was created for them is dropped again.`,
    fields: [...parts, reading, fresh, progress, sent],
    statements: () => {
      const { namespace, name } = place();
      fresh.hidden = !isNew() && !isMade;
      const comma = isText && editor.value.some((column) => column.name.includes(",") && column.name !== column.was);
      const missing = name === "" ? "The table needs a name." : isNew() ? (troubleOf(editor.value) ?? (comma ? "New names of columns cannot have commas." : null)) : null;
      if (missing !== null) return missing;
      const table = qualified(namespace, name);
      const given = Object.entries(loadOptions()).map(([option, value]) => `${option} ${literal(value)}`).join(", ");
      const copy = `COPY ${table} FROM STDIN WITH (${given})`;
      return isNew() ? [createStatement(table, editor.value, layout.value()), copy] : [copy];
    },
    run: async (statements, signal) => {
      const target = place();
      const load = loadOptions();
      if (statements.length > 1) {
        await runSql({ sql: statements[0] ?? "", parameters: [] }, { maxRows: 1, signal });
        isMade = true;
      }
      progress.hidden = false;
      try {
        const { rows } = await uploadRows(target.namespace, target.name, file, load, signal, (share) => {
          progress.value = share;
          sent.textContent = share < 1 ? `${bytes(share * file.size)} of ${bytes(file.size)} sent` : "All is sent; rows are sorted and written";
        });
        return `${count(rows)} rows are in ${target.name}`;
      } catch (error) {
        progress.hidden = true;
        sent.textContent = "";
        if (statements.length > 1) await dropEmpty(qualified(target.namespace, target.name)).catch(() => {});
        isMade = false;
        throw error;
      }
    },
    done: (said) => { actions.notify(said); actions.changed(place()); },
  });
}

/**
 * Drops the table that a load has made and not filled; unless somebody else has done that.
 *
 * @param {string} table
 */
async function dropEmpty(table) {
  const { rows } = await runSql({ sql: `SELECT count(*) FROM ${table}`, parameters: [] }, { maxRows: 1 });
  if (Number(rows[0]?.[0]) === 0) await runSql({ sql: `DROP TABLE ${table}`, parameters: [] }, { maxRows: 1 });
}

/**
 * @param {File} file
 * @param {unknown} error
 */
function openTrouble(file, error) {
  const dialog = h("dialog", { class: "dialog", "aria-label": `Load ${file.name}`, onclose: () => dialog.remove() },
    h("header", {}, h("h2", {}, `${file.name} cannot be loaded`)),
    h("div", { class: "dialog-body dialog-trouble", role: "alert" }, ...describe(error)),
    h("footer", {}, h("span", {}), h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * A table's name for a file.
 *
 * @param {string} file
 */
function nameOf(file) {
  const stem = file.replace(/\.(gz|gzip|zst|zstd)$/i, "").replace(/\.[^.]*$/, "");
  return stem.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").replace(/^(?=\d)/, "t_") || "new_table";
}

/**
 * Takes files that are dropped on an element.
 *
 * @param {HTMLElement} element
 * @param {(file: File) => void} take
 */
export function takeFiles(element, take) {
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
  let depth = 0;
  const show = (/** @type {number} */ now) => {
    depth = Math.max(0, now);
    element.classList.toggle("drop-here", depth > 0);
  };
  element.addEventListener("dragenter", (event) => hasFiles(event) && show(depth + 1));
  element.addEventListener("dragleave", (event) => hasFiles(event) && show(depth - 1));
  element.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  element.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(0);
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}
