// The samples of the last five minutes, one per second, as charts draw them.

/** @typedef {import("./api.js").Sample} Sample */
/** @typedef {import("./api.js").Status} Status */

export const SPAN_MS = 300_000;

export class Samples {
  /** @type {Sample[]} */
  all = [];

  /** Time of the newest sample, ms since 1970; 0 before the first. */
  get newest() {
    return this.all.at(-1)?.unix_ms ?? 0;
  }

  /** @param {Status} status */
  add(status) {
    const newest = this.newest;
    const oldest = status.now_unix_ms - SPAN_MS - 1000;
    this.all = [...this.all, ...status.history.filter((sample) => sample.unix_ms > newest)]
      .filter((sample) => sample.unix_ms > oldest);
  }
}

/**
 * @param {Samples} samples
 * @param {(sample: Sample) => (number | null)[]} values in the order of the chart's series
 */
export function points(samples, values) {
  return samples.all.map((sample) => ({ at: sample.unix_ms, values: values(sample) }));
}
