// What a chart draws of a result: its columns as they are, or one series for each value of a column.

/** @typedef {import("./api.js").ResultColumn} ResultColumn */
/** @typedef {import("./result-chart.js").ChartChoice} ChartChoice */

/** Names of the series in `columns`, `rows` with a value for each; `x` and `y` are numbers of columns. @typedef {{ columns: ResultColumn[], rows: unknown[][], x: number, y: number[], left: number }} Drawn */

/**
 * @param {{ columns: ResultColumn[], rows: unknown[][] }} result
 * @param {ChartChoice} choice
 * @param {number} most series
 * @returns {Drawn} `left` series have no room
 */
export function drawnOf({ columns, rows }, { x, y, by = -1 }, most) {
  const value = y[0];
  const [along, split] = [columns[x], columns[by]];
  if (!along || !split || value === undefined || by === x) return { columns, rows, x, y, left: 0 };
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const row of rows) sums.set(nameOf(row[by]), (sums.get(nameOf(row[by])) ?? 0) + Math.abs(Number(row[value]) || 0));
  const largest = [...sums].toSorted((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
  // In the order in which they come.
  const names = [...sums.keys()].filter((name) => largest.includes(name));
  const places = new Map(names.map((name, index) => [name, index + 1]));
  /** @type {Map<string, unknown[]>} */
  const points = new Map();
  for (const row of rows) {
    const place = places.get(nameOf(row[by]));
    if (place === undefined) continue;
    const key = JSON.stringify(row[x]);
    const point = points.get(key) ?? [row[x], ...names.map(() => null)];
    point[place] = row[value];
    points.set(key, point);
  }
  const type = columns[value]?.type ?? "";
  return {
    columns: [along, ...names.map((name) => ({ name, type, nullable: true }))], rows: [...points.values()],
    x: 0, y: names.map((_, index) => index + 1), left: sums.size - names.length,
  };
}

/** @param {unknown} value */
function nameOf(value) {
  return value === null || value === undefined ? "NULL" : String(value);
}
