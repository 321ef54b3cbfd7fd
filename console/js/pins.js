// Columns that stay in view: one that would be scrolled out to a side stops at the edge there. All keep their order.

/** What is left for the other columns, at least. */
const OTHERS_PX_MIN = 120;

export class Pins {
  /** Numbers of columns, in their order. @type {number[]} */
  all = [];

  /** @param {number} column */
  toggle(column) {
    const rest = this.all.filter((other) => other !== column);
    this.all = rest.length < this.all.length ? rest : [...rest, column].sort((a, b) => a - b);
  }

  /** @param {number} column */
  has(column) {
    return this.all.includes(column);
  }

  /**
   * Where the left edges of pinned columns are.
   *
   * @param {(column: number) => { left: number, width: number }} natural where a column is without pins, in pixels from the left of all
   * @param {number} left edge of what is in view, behind the row numbers
   * @param {number} right edge of what is in view
   * @returns {Map<number, number>} by column; empty if there is no room for them
   */
  places(natural, left, right) {
    const columns = this.all.map((column) => ({ column, ...natural(column) }));
    const width = columns.reduce((sum, one) => sum + one.width, 0);
    /** @type {Map<number, number>} */
    const places = new Map();
    if (width + OTHERS_PX_MIN > right - left) return places;
    for (const one of columns) {
      places.set(one.column, Math.max(one.left, left));
      left += one.width;
    }
    for (const one of columns.reverse()) {
      places.set(one.column, Math.min(places.get(one.column) ?? 0, right - one.width));
      right -= one.width;
    }
    return places;
  }

  /**
   * How much of the view pinned columns may cover, on each side of a column.
   *
   * @param {number} column
   * @param {(column: number) => { width: number }} natural
   */
  cover(column, natural) {
    const sum = (/** @type {number[]} */ columns) => columns.reduce((all, one) => all + natural(one).width, 0);
    return { left: sum(this.all.filter((one) => one < column)), right: sum(this.all.filter((one) => one > column)) };
  }
}
