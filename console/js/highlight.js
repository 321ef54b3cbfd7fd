// Colours for SQL: text in, tokens out. It need not be right about every dialect, only calm.

/** @typedef {"keyword" | "string" | "number" | "comment" | "name" | "plain"} TokenKind */
/** @typedef {{ kind: TokenKind, text: string }} Token */

export const KEYWORDS = new Set(
  (
    "ADD ALL ALTER ANALYZE AND ANTI ANY AS ASC BETWEEN BY CASE CAST COLUMN COMMENT COPY CREATE CROSS " +
    "CURRENT DATABASE DELETE DESC DESCRIBE DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTRACT FALSE " +
    "FETCH FILTER FIRST FOLLOWING FOR FROM FULL GROUP GROUPING HAVING IF ILIKE IN INNER INSERT INTERSECT " +
    "INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT MERGE NATURAL NOT NULL NULLS OFFSET ON OR ORDER OUTER " +
    "OVER PARTITION PARTITIONED PRECEDING PROPERTIES QUALIFY RANGE RECURSIVE RENAME REPLACE RIGHT ROLLUP ROW ROWS " +
    "SCHEMA SELECT SEMI SET SETS SHOW SORTED STORED TABLE TABLES TBLPROPERTIES THEN TO TRUE TRUNCATE UNBOUNDED UNION UNNEST " +
    "UPDATE USING VALUES VERBOSE VIEW WHEN WHERE WINDOW WITH WITHIN " +
    "BIGINT BINARY BOOLEAN CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER NUMERIC PRECISION REAL SMALLINT STRING TEXT " +
    "TIME TIMESTAMP TIMESTAMPTZ TINYINT VARCHAR"
  ).split(" "),
);

const TOKEN =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|([A-Za-z_][A-Za-z0-9_]*)/g;

/**
 * Splits a text into tokens; together they are the text.
 *
 * @param {string} sql
 * @returns {Token[]}
 */
export function tokenize(sql) {
  /** @type {Token[]} */
  const tokens = [];
  let end = 0;
  for (const match of sql.matchAll(TOKEN)) {
    if (match.index > end) tokens.push({ kind: "plain", text: sql.slice(end, match.index) });
    tokens.push({ kind: kindOf(match), text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < sql.length) tokens.push({ kind: "plain", text: sql.slice(end) });
  return tokens;
}

/**
 * @param {RegExpMatchArray} match
 * @returns {TokenKind}
 */
function kindOf(match) {
  if (match[1] !== undefined) return "comment";
  if (match[2] !== undefined) return "string";
  if (match[3] !== undefined) return "name";
  if (match[4] !== undefined) return "number";
  return KEYWORDS.has((match[5] ?? "").toUpperCase()) ? "keyword" : "plain";
}

/**
 * Writes coloured SQL into an element. Texts beyond 40,000 characters stay plain.
 *
 * @param {HTMLElement} element
 * @param {string} sql
 */
export function paint(element, sql) {
  if (sql.length > 40_000) {
    element.textContent = sql;
    return;
  }
  const parts = tokenize(sql).map(({ kind, text }) => {
    if (kind === "plain") return document.createTextNode(text);
    const span = document.createElement("span");
    span.className = `sql-${kind}`;
    span.textContent = text;
    return span;
  });
  element.replaceChildren(...parts);
}
