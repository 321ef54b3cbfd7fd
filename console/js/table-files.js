// The data files of a table: table partitions with their sizes, files with bounds, how well they are sorted.

import { factsList } from "./details.js";
import { h, setText } from "./dom.js";
import { bytes, count, percent, plural, sizesOf } from "./format.js";
import { Listing } from "./listing.js";
import { sizeChart } from "./size-chart.js";

/** @typedef {import("./api.js").TableDetails} TableDetails */
/** @typedef {import("./api.js").TableFiles} TableFiles */
/** @typedef {import("./api.js").DataFile} DataFile */
/** @typedef {import("./api.js").TablePartition} TablePartition */

/**
 * @param {TableFiles} files
 * @param {TableDetails} details
 */
export function filesSection(files, details) {
  const listed = h("div", {});
  const list = (/** @type {string | null} */ partition) => {
    const rows = partition === null ? files.files : files.files.filter((file) => file.partition === partition);
    const listing = new Listing({ label: "Data files", key: (/** @type {DataFile} */ file) => file.path, empty: "No file is listed.", columns: fileColumns(files.columns, partition === null && files.partitions.length > 1), open: () => {} });
    listing.show(rows);
    listed.replaceChildren(
      h("h3", {}, partition === null ? "Files" : `Files of ${partition}`),
      listing.element,
      files.files.length < files.files_total ? h("p", { class: "muted" }, `The first ${count(files.files.length)} of ${count(files.files_total)} files are listed; sums are of all.`) : "");
  };
  list(null);
  const parts = [factsList([
    ["Files", `${count(files.files_total)}, ${bytes(files.bytes)}${files.files_total > 0 ? `, ${bytes(files.bytes / files.files_total)} each on average` : ""}`],
    ["Rows in files", count(files.rows)],
    ["Fresh rows", count(details.fresh_rows)],
    ...sortQuality(files),
  ])];
  if (files.partitions.length < 2) return [...parts, listed];
  // Names of days, months and years are in the order of time.
  const ordered = files.partitions.toSorted((a, b) => a.partition.localeCompare(b.partition, "en", { numeric: true }));
  const chart = sizeChart("Sizes of table partitions", ordered.map(({ partition, bytes: size, rows }) => ({ label: partition, bytes: size, rows })), "sum");
  return [...parts, h("h3", {}, "Table partitions"), chart, partitionListing(files, list), listed];
}

/**
 * @param {TableFiles} files
 * @returns {[string, string][]}
 */
function sortQuality({ sort }) {
  if (sort === null) return [["Sort quality", "nothing to compare: no sort order, or no bounds of its first column"]];
  const { compared, overlapping, depth_mean, depth_max } = sort;
  return [
    ["Sort quality", overlapping === 0 ? `all ${plural(compared, "file")} apart: a key of a partition is in one file` : `${count(overlapping)} of ${plural(compared, "file")} overlap (${percent(overlapping / compared)})`],
    ["Overlap depth", `${depth_mean.toFixed(depth_mean === depth_max ? 0 : 2)} on average, ${count(depth_max)} at most: files to read for one key`],
  ];
}

/**
 * @param {TableFiles} files
 * @param {(partition: string | null) => void} list
 */
function partitionListing(files, list) {
  let open = "";
  const listing = new Listing({
    label: "Table partitions", key: (/** @type {TablePartition} */ row) => row.partition, empty: "None.",
    columns: partitionColumns(),
    open: (row) => {
      open = open === row.partition ? "" : row.partition;
      listing.mark(open);
      list(open === "" ? null : open);
    },
  });
  listing.show(files.partitions);
  return listing.element;
}

/** @returns {import("./listing.js").Column<TablePartition>[]} */
function partitionColumns() {
  return [
    { name: "partition", label: "Partition", value: (row) => row.partition },
    { name: "files", label: "Files", numeric: true, value: (row) => row.files, text: (row) => count(row.files) },
    { name: "rows", label: "Rows", numeric: true, value: (row) => row.rows, text: (row) => count(row.rows) },
    { name: "bytes", label: "Size", numeric: true, unit: sizesOf, value: (row) => row.bytes },
    { name: "overlapping", label: "Overlapping", title: "Files that share keys with another of the partition", numeric: true, value: (row) => row.overlapping, text: (row) => count(row.overlapping) },
    { name: "depth", label: "Depth", title: "Most files that hold one key", numeric: true, value: (row) => row.depth_max ?? 0, text: (row) => (row.depth_max === null ? "–" : count(row.depth_max)) },
  ];
}

/**
 * @param {string[]} bounds columns whose bounds are shown
 * @param {boolean} partitions whether the files are of several table partitions
 * @returns {import("./listing.js").Column<DataFile>[]}
 */
function fileColumns(bounds, partitions) {
  const ofColumn = (/** @type {DataFile} */ file, /** @type {string} */ column) => {
    const pair = file.bounds[column];
    return pair ? (pair[0] === pair[1] ? pair[0] : `${pair[0]} – ${pair[1]}`) : "–";
  };
  return [
    { name: "path", label: "File", value: (file) => file.path, paint: paintFile },
    ...(partitions ? [{ name: "partition", label: "Partition", value: (/** @type {DataFile} */ file) => file.partition }] : []),
    { name: "rows", label: "Rows", numeric: true, value: (file) => file.rows, text: (file) => count(file.rows) },
    { name: "bytes", label: "Size", numeric: true, unit: sizesOf, value: (file) => file.bytes },
    { name: "stripes", label: "Stripes", numeric: true, value: (file) => file.stripes ?? 0, text: (file) => (file.stripes === null ? "–" : count(file.stripes)) },
    { name: "sorted", label: "Sorted", title: "Whether its rows follow the table's order", value: (file) => (file.sorted ? "yes" : "no") },
    { name: "depth", label: "Depth", title: "Most files of its partition that hold one of its keys; 1 is best", numeric: true, value: (file) => file.depth ?? 0, text: (file) => (file.depth === null ? "–" : count(file.depth)) },
    ...bounds.map((column) => ({ name: `bounds ${column}`, label: column, title: `Least and greatest ${column}`, value: (/** @type {DataFile} */ file) => ofColumn(file, column) })),
  ];
}

/**
 * The file's name, its whole path as the title.
 *
 * @param {HTMLElement} cell
 * @param {DataFile} file
 */
function paintFile(cell, file) {
  setText(cell, file.path.slice(file.path.lastIndexOf("/") + 1).replace(/^(\d+-[^-]*).*(\.\w+)$/, "$1…$2"));
  cell.title = file.path;
}
