// SQL as tokens and statements, cut where the server cuts it (`stoa-sql`, lexer.rs and split.rs).

/**
 * Blanks and comments mean nothing; together the tokens are the text.
 *
 * @typedef {"blank" | "comment" | "word" | "number" | "text" | "name" | "sign"} Kind
 * @typedef {{ kind: Kind, text: string, at: number }} Token
 * @typedef {{ from: number, to: number, text: string }} Statement
 */

const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const NUMBER = /\d[\d_]*(?:\.\d*)?/y;
const BLANK = /\s+/y;
const MARK = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;

/**
 * @param {string} sql
 * @returns {Token[]}
 */
export function tokensOf(sql) {
  /** @type {Token[]} */
  const tokens = [];
  let behindE = false;
  for (let at = 0; at < sql.length;) {
    const [kind, end] = next(sql, at, behindE);
    const text = sql.slice(at, end);
    tokens.push({ kind, text, at });
    behindE = kind === "word" && /^e$/i.test(text);
    at = end;
  }
  return tokens;
}

/**
 * @param {string} sql
 * @param {number} at
 * @param {boolean} behindE
 * @returns {[Kind, number]} with where it ends; a quote or comment that does not end runs to the end of the text
 */
function next(sql, at, behindE) {
  const [first = "", second = ""] = [sql[at], sql[at + 1]];
  if (first === "'") return ["text", quotedEnd(sql, at, "'", behindE)];
  if (first === '"' || first === "`") return ["name", quotedEnd(sql, at, first, false)];
  if (first === "-" && second === "-") return ["comment", lineEnd(sql, at)];
  if (first === "/" && second === "*") return ["comment", commentEnd(sql, at)];
  const mark = first === "$" ? matched(MARK, sql, at) : 0;
  if (mark > 0) {
    const close = sql.indexOf(sql.slice(at, at + mark), at + mark);
    return ["text", close < 0 ? sql.length : close + mark];
  }
  for (const [kind, pattern] of /** @type {const} */ ([["blank", BLANK], ["number", NUMBER], ["word", WORD]])) {
    const length = matched(pattern, sql, at);
    if (length > 0) return [kind, at + length];
  }
  return ["sign", at + 1];
}

/**
 * @param {RegExp} pattern sticky
 * @param {string} sql
 * @param {number} at
 * @returns {number} length of what it matches there
 */
function matched(pattern, sql, at) {
  pattern.lastIndex = at;
  return pattern.exec(sql)?.[0].length ?? 0;
}

/**
 * @param {string} sql
 * @param {number} at
 * @param {string} quote
 * @param {boolean} escapes
 */
function quotedEnd(sql, at, quote, escapes) {
  for (let place = at + 1; place < sql.length; place += 1) {
    if (escapes && sql[place] === "\\") place += 1;
    else if (sql[place] === quote && sql[place + 1] === quote) place += 1;
    else if (sql[place] === quote) return place + 1;
  }
  return sql.length;
}

/**
 * @param {string} sql
 * @param {number} at
 */
function lineEnd(sql, at) {
  const end = sql.indexOf("\n", at);
  return end < 0 ? sql.length : end;
}

/**
 * @param {string} sql
 * @param {number} at
 */
function commentEnd(sql, at) {
  let depth = 0;
  for (let place = at; place < sql.length; place += 1) {
    const two = sql.slice(place, place + 2);
    if (two === "/*") depth += 1;
    else if (two === "*/") depth -= 1;
    else continue;
    place += 1;
    if (depth === 0) return place + 1;
  }
  return sql.length;
}

/**
 * The statements of a text, without semicolons and blanks around; those of blanks and comments alone are left out.
 *
 * @param {string} sql
 * @returns {Statement[]}
 */
export function statementsOf(sql) {
  /** @type {Statement[]} */
  const statements = [];
  let [start, end] = [-1, 0];
  const close = () => {
    if (start >= 0) statements.push({ from: start, to: end, text: sql.slice(start, end) });
    start = -1;
  };
  for (const token of tokensOf(sql)) {
    if (token.kind === "sign" && token.text === ";") close();
    else if (token.kind !== "blank" && token.kind !== "comment") {
      if (start < 0) start = token.at;
      end = token.at + token.text.length;
    }
  }
  close();
  return statements;
}

/**
 * The statement at a place: the one that it is in; behind its semicolon on the same line, the one before; otherwise
 * the next one, or the last one.
 *
 * @param {string} sql
 * @param {number} place
 * @returns {Statement | null}
 */
export function statementAt(sql, place) {
  const all = statementsOf(sql);
  const within = all.find(({ from, to }) => from <= place && place <= to);
  if (within) return within;
  const before = all.findLast(({ to }) => to < place);
  if (before && !sql.slice(before.to, place).includes("\n")) return before;
  return all.find(({ from }) => from > place) ?? before ?? null;
}
