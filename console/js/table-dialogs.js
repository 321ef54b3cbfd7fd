// What can be done to a table: rename, compact, expire, drop, roll back; each as SQL that is shown first.

import { h } from "./dom.js";
import { count, dateTime } from "./format.js";
import { field, openSqlDialog } from "./sql-dialog.js";
import { qualified, quoted } from "./sql-names.js";

/** @typedef {import("./api.js").Snapshot} Snapshot */
/** @typedef {{ namespace: string, name: string }} Place */
/** @typedef {{ notify: (text: string) => void, changed: (now: Place | null) => void }} TableDialogActions */

/**
 * @param {Place} place
 * @param {TableDialogActions} actions
 */
export function renameTable({ namespace, name }, { notify, changed }) {
  const input = h("input", { class: "text", value: name, autocomplete: "off", spellcheck: "false" });
  openSqlDialog({
    title: `Rename ${namespace}.${name}`, fields: [field("New name", input)], yes: "Rename",
    statements: () => {
      const to = input.value.trim();
      return to === "" || to === name ? "Write the new name." : [`ALTER TABLE ${qualified(namespace, name)} RENAME TO ${quoted(to)}`];
    },
    done: () => { notify(`${name} is ${input.value.trim()} now`); changed({ namespace, name: input.value.trim() }); },
  });
}

/**
 * @param {Place} place
 * @param {TableDialogActions} actions
 */
export function compactTable({ namespace, name }, { notify, changed }) {
  const full = h("input", { type: "checkbox" });
  openSqlDialog({
    title: `Compact ${namespace}.${name}`, yes: "Compact",
    note: "Merges small files into few sorted ones. It runs by itself, too; reports go on meanwhile.",
    fields: [h("label", { class: "check" }, full, "All files, whatever their size: one sorted run per table partition")],
    statements: () => [`COMPACT TABLE ${qualified(namespace, name)}${full.checked ? " FULL" : ""}`],
    done: (said) => { notify(said); changed({ namespace, name }); },
  });
}

/**
 * @param {Place} place
 * @param {TableDialogActions} actions
 */
export function expireSnapshots({ namespace, name }, { notify, changed }) {
  openSqlDialog({
    title: `Expire snapshots of ${namespace}.${name}`, yes: "Expire", danger: true,
    note: "Removes versions that are older than the table's properties say, and the files that only they need. What is removed can neither be looked at nor rolled back to.",
    statements: () => [`EXPIRE SNAPSHOTS FROM ${qualified(namespace, name)}`],
    done: (said) => { notify(said); changed({ namespace, name }); },
  });
}

/**
 * @param {Place & { rows: number | null }} place
 * @param {TableDialogActions} actions
 */
export function dropTable({ namespace, name, rows }, { notify, changed }) {
  openSqlDialog({
    title: `Drop ${namespace}.${name}`, yes: "Drop", danger: true,
    note: `The table${rows === null ? "" : `, its ${count(rows)} rows`} and all its versions are removed. This cannot be undone.`,
    statements: () => [`DROP TABLE ${qualified(namespace, name)}`],
    done: () => { notify(`${name} is dropped`); changed(null); },
  });
}

/**
 * @param {Place} place
 * @param {Snapshot} snapshot
 * @param {TableDialogActions} actions
 */
export function rollBack({ namespace, name }, { id, committed_unix_ms, summary }, { notify, changed }) {
  const rows = summary["total-records"];
  openSqlDialog({
    title: `Roll back ${namespace}.${name}`, yes: "Roll back", danger: true,
    note: `The table holds again what it held on ${dateTime(committed_unix_ms)}${rows === undefined ? "" : `: ${count(Number(rows))} rows`}. Rows that were written since, fresh ones included, stay in the version that is the latest now: as long as that has not expired, you can roll back to it.`,
    statements: () => [`ALTER TABLE ${qualified(namespace, name)} ROLLBACK TO VERSION ${id}`],
    done: (said) => { notify(said); changed({ namespace, name }); },
  });
}
