// The formatter: the same tokens with other blanks between them. It changes no token, so no meaning.

import { tokensOf } from "./sql-tokens.js";

/** @typedef {import("./sql-tokens.js").Token} Token */

const INDENT = "  ";
const LINE_MAX = 100;

/** Words with which a part of a query begins; the longest that fits counts. */
const CLAUSES = [
  "WITH", "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "FETCH", "WINDOW", "QUALIFY", "UNION ALL", "UNION", "INTERSECT", "EXCEPT",
  "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "FULL OUTER JOIN", "INNER JOIN", "CROSS JOIN", "NATURAL JOIN", "JOIN",
  "INSERT INTO", "VALUES", "UPDATE", "SET", "DELETE FROM", "MERGE INTO", "USING", "WHEN MATCHED", "WHEN NOT MATCHED", "ON CONFLICT", "RETURNING",
  "PARTITIONED BY", "TBLPROPERTIES",
].map((clause) => clause.split(" ")).toSorted((a, b) => b.length - a.length);
/** Of statements that begin so, only queries are laid out. */
const LAID_OUT = new Set(["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "VALUES"]);
const TIGHT_BEFORE = new Set([",", ")", ";", ".", "]"]);
const TIGHT_AFTER = new Set(["(", ".", "["]);

/**
 * @param {string} sql
 * @returns {string}
 */
export function formatSql(sql) {
  const tokens = tokensOf(sql);
  /** @type {string[]} */
  const parts = [];
  for (let start = 0; start < tokens.length;) {
    const semicolon = tokens.findIndex((token, index) => index >= start && token.kind === "sign" && token.text === ";");
    const end = semicolon < 0 ? tokens.length : semicolon + 1;
    const part = tokens.slice(start, end).filter(({ kind }) => kind !== "blank");
    if (part.some(({ text }) => text !== ";")) parts.push(layOut(part));
    else if (part.length > 0) parts.push(`${parts.pop() ?? ""};`);
    start = end;
  }
  const formatted = parts.join("\n\n") + (parts.length > 0 ? "\n" : "");
  // A quote that does not end holds all blanks that follow it.
  return said(formatted) === said(sql) ? formatted : sql;
}

/** @param {string} sql */
function said(sql) {
  return tokensOf(sql).flatMap(({ kind, text }) => (kind === "blank" ? [] : [text])).join("\n");
}

/**
 * One statement.
 *
 * @param {Token[]} tokens without blanks
 */
function layOut(tokens) {
  const first = tokens.find(({ kind }) => kind === "word")?.text.toUpperCase() ?? "";
  const lines = new Lines();
  const isLaidOut = LAID_OUT.has(first);
  /** What each open bracket is: of a query, or of a list. @type {{ isQuery: boolean, depth: number }[]} */
  const brackets = [];
  let depth = 0;
  let between = false;
  let cases = 0;
  for (let index = 0; index < tokens.length; index += 1) {
    const token = /** @type {Token} */ (tokens[index]);
    const word = token.kind === "word" ? token.text.toUpperCase() : "";
    const inList = brackets.at(-1)?.isQuery === false;
    const clause = isLaidOut && !inList ? clauseAt(tokens, index) : 0;
    if (clause > 0) {
      if (!lines.isEmpty) lines.breakTo(depth);
      for (const part of tokens.slice(index, index + clause)) lines.add(part);
      index += clause - 1;
      between = false;
    } else if (token.text === "(") {
      const isQuery = /^(SELECT|WITH)$/i.test(tokens[index + 1]?.text ?? "");
      lines.add(token);
      brackets.push({ isQuery, depth });
      if (isQuery) lines.breakTo((depth = lines.indent + 1));
    } else if (token.text === ")") {
      const bracket = brackets.pop();
      if (bracket?.isQuery) lines.breakTo(Math.max(0, depth - 1));
      depth = bracket?.depth ?? depth;
      lines.add(token);
    } else if (isLaidOut && !inList && cases === 0 && (word === "AND" || word === "OR") && !between) {
      lines.breakTo(depth + 1);
      lines.add(token);
    } else {
      if (word === "BETWEEN") between = true;
      else if (word === "AND") between = false;
      else if (word === "CASE") cases += 1;
      else if (word === "END") cases = Math.max(0, cases - 1);
      if (token.text === "," && isLaidOut && !inList) {
        lines.add(token);
        lines.mayBreakTo(depth + 1);
      } else lines.add(token);
    }
  }
  return lines.text();
}

/**
 * How many tokens of a clause's beginning are here.
 *
 * @param {Token[]} tokens
 * @param {number} index
 */
function clauseAt(tokens, index) {
  // `x.from` and `"from"` are names.
  if (tokens[index]?.kind !== "word" || tokens[index - 1]?.text === ".") return 0;
  const found = CLAUSES.find((clause) => clause.every((word, offset) => tokens[index + offset]?.kind === "word" && tokens[index + offset]?.text.toUpperCase() === word));
  if (!found) return 0;
  // Of expressions: `IS DISTINCT FROM`, `extract(… FROM …)` is within brackets anyway.
  if (found[0] === "FROM" && /^distinct$/i.test(tokens[index - 1]?.text ?? "") && /^(is|not)$/i.test(tokens[index - 2]?.text ?? "")) return 0;
  return found.length;
}

/** Lines that grow token by token. */
class Lines {
  /** @type {string[]} */
  #lines = [];
  #line = "";
  #indent = 0;
  /** Where the line may be broken, if it becomes too long. */
  #breaks = /** @type {{ at: number, depth: number } | null} */ (null);
  /** @type {Token | null} */
  #last = null;

  get indent() {
    return this.#indent;
  }

  get isEmpty() {
    return this.#line === "" && this.#lines.length === 0;
  }

  /** @param {Token} token */
  add(token) {
    const gap = this.#line === "" || !this.#isApart(token) ? "" : " ";
    this.#line += gap + token.text;
    this.#last = token;
    if (token.kind === "comment" && token.text.startsWith("--")) this.breakTo(this.#indent);
    else if (this.#breaks && INDENT.length * this.#indent + this.#line.length > LINE_MAX) this.#breakAtList();
  }

  /**
   * @param {number} depth of the next line
   */
  breakTo(depth) {
    if (this.#line !== "") this.#lines.push(INDENT.repeat(this.#indent) + this.#line.trimEnd());
    this.#line = "";
    this.#indent = depth;
    this.#breaks = null;
  }

  /** @param {number} depth of the line that begins here, if this one becomes too long */
  mayBreakTo(depth) {
    this.#breaks = { at: this.#line.length, depth };
  }

  text() {
    this.breakTo(0);
    return this.#lines.join("\n");
  }

  #breakAtList() {
    const { at, depth } = /** @type {{ at: number, depth: number }} */ (this.#breaks);
    const rest = this.#line.slice(at).trimStart();
    if (rest === "") return;
    this.#line = this.#line.slice(0, at);
    this.breakTo(depth);
    this.#line = rest;
  }

  /**
   * Whether a blank goes before a token: where there was one, except at brackets, commas and points.
   *
   * @param {Token} token
   */
  #isApart(token) {
    const last = this.#last;
    if (!last) return false;
    const wasApart = last.at + last.text.length !== token.at;
    if (token.text === "." || last.text === ".") return wasApart;
    if (TIGHT_BEFORE.has(token.text) || TIGHT_AFTER.has(last.text)) return false;
    if (last.text === ",") return true;
    return wasApart;
  }
}
