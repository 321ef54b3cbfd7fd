// Names for completion: tables and their columns, read when they are first needed.

import { runSql } from "./api.js";
import { OWN } from "./statements.js";

/** @typedef {{ namespace: string, name: string, columns: string[] }} NamedTable */

const COLUMNS = `SELECT table_schema, table_name, column_name FROM information_schema.columns AS ${OWN}
WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY table_schema, table_name, ordinal_position`;
const COLUMNS_MAX = 20_000;

export class Names {
  /** @type {NamedTable[]} */
  tables = [];
  /** @type {Promise<void> | null} */
  #reading = null;

  /** What was read is out of date; it is read again when it is next needed. */
  forget() {
    this.#reading = null;
  }

  /** Completes when `tables` is there; where the server does not say, it stays as it was. */
  ready() {
    this.#reading ??= this.#read().catch(() => this.forget());
    return this.#reading;
  }

  async #read() {
    const { rows } = await runSql({ sql: COLUMNS, parameters: [] }, { maxRows: COLUMNS_MAX });
    /** @type {Map<string, NamedTable>} */
    const found = new Map();
    for (const [namespace, name, column] of /** @type {[string, string, string][]} */ (rows)) {
      const key = `${namespace}.${name}`;
      const table = found.get(key) ?? { namespace, name, columns: [] };
      table.columns.push(column);
      found.set(key, table);
    }
    this.tables = [...found.values()];
  }
}
