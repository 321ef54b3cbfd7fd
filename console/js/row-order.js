// The order of a result's rows by one of their columns.

/** @typedef {import("./api.js").ResultColumn} ResultColumn */
/** @typedef {{ column: number, down: boolean }} Sort */

const NUMBER = /^[+-]?\d+(\.\d+)?$/;

/**
 * Which row is at each place. NULLs are last, equal ones as they came. Numbers that are texts, since they have more
 * digits than a JSON reader keeps, are compared as numbers.
 *
 * @param {unknown[][]} rows
 * @param {ResultColumn[]} columns
 * @param {Sort} sort
 * @returns {Uint32Array}
 */
export function sortedBy(rows, columns, { column, down }) {
  const isText = /^(text|string|varchar|char|jsonb?|uuid)/.test(columns[column]?.type ?? "");
  const keys = rows.map((row) => row[column] ?? null);
  const sign = down ? -1 : 1;
  const order = Uint32Array.from(rows, (_, index) => index);
  return order.sort((left, right) => {
    const [a, b] = [keys[left] ?? null, keys[right] ?? null];
    if (a === null || b === null) return Number(a === null) - Number(b === null) || left - right;
    return sign * (isText ? byText(a, b) : byValue(a, b)) || left - right;
  });
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function byValue(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [left, right] = [String(a), String(b)];
  if (NUMBER.test(left) && NUMBER.test(right)) return Number(left) - Number(right) || byDigits(left, right);
  return byText(a, b);
}

/**
 * Numbers that are the same as doubles.
 *
 * @param {string} a
 * @param {string} b
 */
function byDigits(a, b) {
  const whole = (/** @type {string} */ text) => BigInt(text.split(".")[0] ?? "0");
  const [left, right] = [whole(a), whole(b)];
  if (left !== right) return left < right ? -1 : 1;
  const part = (a.split(".")[1] ?? "").padEnd(40, "0") < (b.split(".")[1] ?? "").padEnd(40, "0") ? -1 : 1;
  return a === b ? 0 : a.startsWith("-") ? -part : part;
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function byText(a, b) {
  const [left, right] = [a, b].map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value)));
  return left === right ? 0 : /** @type {string} */ (left) < /** @type {string} */ (right) ? -1 : 1;
}
