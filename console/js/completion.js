// What may stand at a place of a statement: text and names in, proposals out. It reads SQL roughly:
// what it does not understand, it completes with everything.

import { KEYWORDS, tokenize } from "./highlight.js";
import { statementAt } from "./sql-tokens.js";
import { quoted } from "./sql-names.js";

/** @typedef {import("./names.js").NamedTable} NamedTable */
/** @typedef {{ text: string, kind: "table" | "column" | "schema" | "function" | "keyword", from: string }} Proposal */

/** Characters `start` (inclusive) to `end` (exclusive) are replaced by a proposal. @typedef {{ start: number, end: number, all: Proposal[] }} Completion */

const PROPOSALS_MAX = 60;
const WORD = /(?:(\w+|"[^"]*")\.)?("[^"]*|\w*)$/;
const TABLE_FOLLOWS = /\b(?:from|join|into|update|table|describe|truncate)\s+$/i;
const MENTIONED = /\b(?:from|join|into|update|table)\s+((?:\w+|"[^"]*")(?:\.(?:\w+|"[^"]*"))?)(?:\s+(?:as\s+)?(\w+))?/gi;

const FUNCTIONS = (
  "abs approx_distinct approx_percentile_cont array_agg avg ceil coalesce concat count current_date current_timestamp " +
  "date_part date_trunc dense_rank extract first_value floor generate_series greatest lag last_value lead least length " +
  "lower lpad max median min mod now nullif power rank regexp_match regexp_replace replace round row_number rpad split_part " +
  "sqrt stddev string_agg strpos substr sum to_char to_timestamp trim upper var_pop"
).split(" ");

/**
 * @param {string} sql
 * @param {number} cursor
 * @param {NamedTable[]} tables
 * @returns {Completion | null} `null` inside strings and comments, and where nothing fits
 */
export function complete(sql, cursor, tables) {
  const before = sql.slice(0, cursor);
  if (isInText(before)) return null;
  const [, qualifier, word = ""] = WORD.exec(before) ?? [];
  const start = cursor - word.length;
  const known = unquoted(word).toLowerCase();
  const mentioned = mentionedTables(statementAt(sql, cursor)?.text ?? "", tables);
  // Before there is a FROM, columns of all tables may be meant.
  const columns = mentioned.length > 0 || word === "" ? mentioned.flatMap(({ table }) => columnsOf(table)) : tables.filter(isOwn).flatMap(columnsOf);
  const candidates = qualifier !== undefined ? behind(unquoted(qualifier), mentioned, tables)
    : TABLE_FOLLOWS.test(before.slice(0, start)) ? tableNames(tables)
    : [...columns, ...FUNCTIONS.map(ofFunction), ...tableNames(tables), ...keywords(word)];
  const all = fitting(candidates, known);
  return all.length === 0 || (all.length === 1 && all[0]?.text === word) ? null : { start, end: cursor, all };
}

/**
 * Those that begin so, then columns and tables that have it further on; each text once.
 *
 * @param {Proposal[]} candidates
 * @param {string} known in lower case
 */
function fitting(candidates, known) {
  const name = (/** @type {Proposal} */ proposal) => unquoted(proposal.text).toLowerCase();
  const begin = candidates.filter((proposal) => name(proposal).startsWith(known));
  const inside = known.length < 2 ? [] : candidates.filter((proposal) => (proposal.kind === "column" || proposal.kind === "table") && name(proposal).indexOf(known) > 0);
  const seen = new Set();
  return [...begin, ...inside].filter(({ text }) => !seen.has(text) && seen.add(text)).slice(0, PROPOSALS_MAX);
}

/**
 * What may follow `qualifier.`
 *
 * @param {string} qualifier
 * @param {{ table: NamedTable, alias: string }[]} mentioned
 * @param {NamedTable[]} tables
 */
function behind(qualifier, mentioned, tables) {
  const called = mentioned.filter(({ alias, table }) => alias === qualifier || table.name === qualifier);
  if (called.length > 0) return called.flatMap(({ table }) => columnsOf(table));
  const inside = tables.filter((table) => table.namespace === qualifier);
  return inside.map((table) => ({ text: quoted(table.name), kind: /** @type {const} */ ("table"), from: qualifier }));
}

/**
 * @param {string} statement
 * @param {NamedTable[]} tables
 */
function mentionedTables(statement, tables) {
  return [...statement.matchAll(MENTIONED)].flatMap(([, name = "", alias = ""]) => {
    const parts = name.split(".").map(unquoted);
    const [table = "", namespace = "public"] = parts.toReversed();
    const found = tables.find((candidate) => candidate.name === table && candidate.namespace === namespace);
    return found ? [{ table: found, alias: KEYWORDS.has(alias.toUpperCase()) ? "" : alias }] : [];
  });
}

/**
 * @param {NamedTable} table
 * @returns {Proposal[]}
 */
function columnsOf(table) {
  return table.columns.map((column) => ({ text: quoted(column), kind: "column", from: table.name }));
}

/**
 * @param {NamedTable[]} tables
 * @returns {Proposal[]}
 */
function tableNames(tables) {
  const others = new Set(tables.map((table) => table.namespace).filter((namespace) => namespace !== "public"));
  return [
    ...tables.filter((table) => table.namespace === "public").map((table) => ({ text: quoted(table.name), kind: /** @type {const} */ ("table"), from: "public" })),
    ...[...others].map((namespace) => ({ text: quoted(namespace), kind: /** @type {const} */ ("schema"), from: "" })),
  ];
}

/**
 * @param {string} name
 * @returns {Proposal}
 */
function ofFunction(name) {
  return { text: name, kind: "function", from: "" };
}

/**
 * In the case in which the word was begun; none before there is a word.
 *
 * @param {string} word
 * @returns {Proposal[]}
 */
function keywords(word) {
  if (word === "") return [];
  const small = word === word.toLowerCase();
  return [...KEYWORDS].map((keyword) => ({ text: small ? keyword.toLowerCase() : keyword, kind: "keyword", from: "" }));
}

/** @param {string} before */
function isInText(before) {
  const last = tokenize(before).at(-1);
  if (last?.kind === "string") return true;
  return last?.kind === "comment" && !(last.text.startsWith("/*") && last.text.endsWith("*/"));
}

/**
 * Not one of the server's.
 *
 * @param {NamedTable} table
 */
function isOwn(table) {
  return table.namespace !== "system";
}

/** @param {string} name */
function unquoted(name) {
  return name.replace(/^"|"$/g, "").replaceAll('""', '"');
}
