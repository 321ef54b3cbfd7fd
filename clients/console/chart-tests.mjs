// Charts of results: stacks, and axes of times in a zone.

import assert from "node:assert/strict";

import { cell, open, run } from "./harness.mjs";

async function draw(page, sql) {
  await run(page, sql);
  await cell(page, 0, 0).waitFor();
  await page.getByRole("group", { name: "Show as" }).getByRole("button", { name: "Chart" }).click();
  const chart = page.locator(".result-chart");
  await chart.locator(".mark").first().waitFor();
  return chart;
}

const numbers = async (marks, name) => marks.evaluateAll((all, attribute) => all.map((mark) => Number(mark.getAttribute(attribute))), name);
const labels = async (chart) => chart.locator("text.time").allTextContents();

export const chartTests = {
  async "stacks bars and areas, what is below zero downwards"(page) {
    const chart = await draw(page, "SELECT * FROM (VALUES ('a', 10, 20, -5), ('b', 30, NULL, 5), ('c', 0, 40, -10)) AS t(name, one, two, three)");
    await page.getByLabel("Kind of chart").selectOption("bar");
    const values = page.getByRole("group", { name: "Values" });
    for (const name of ["two", "three"]) await values.getByLabel(name).check();
    await page.getByRole("checkbox", { name: "stacked" }).check();
    assert.match(await chart.getAttribute("aria-label"), /^Stacked bars of one, two, three by name, 3 points/);
    assert.ok(await page.getByRole("checkbox", { name: "logarithmic" }).isDisabled());
    const [one, two, three] = [0, 1, 2].map((series) => chart.locator(`rect.series-${series}`));
    assert.deepEqual([await one.count(), await two.count(), await three.count()], [3, 2, 3], "NULL has none");
    const [tall, y] = [await numbers(one, "height"), await numbers(one, "y")];
    const px = tall[0] / 10;
    const near = (a, b, what) => assert.ok(Math.abs(a - b) < 1, `${what}: ${a} and ${b}`);
    near(tall[1], 30 * px, "30 is three times 10");
    const [twoTall, twoY] = [await numbers(two, "height"), await numbers(two, "y")];
    near(twoTall[0], 20 * px, "20");
    near(twoY[0] + twoTall[0], y[0], "the second stands on the first");
    const threeY = await numbers(three, "y");
    near(threeY[0], y[0] + tall[0], "what is below zero hangs from it");
    near(threeY[1] + 5 * px, y[1], "and what is above stands on the others");
    await page.getByLabel("Kind of chart").selectOption("line");
    assert.equal(await chart.locator("path.area").count(), 3);
    assert.match(await chart.getAttribute("aria-label"), /^Stacked areas/);
    await page.getByRole("checkbox", { name: "stacked" }).uncheck();
    assert.equal(await chart.locator("path.area").count(), 0);
    assert.ok(await page.getByRole("checkbox", { name: "logarithmic" }).isEnabled());
  },

  async "puts times where they are, and in order, with ticks at full days"(page) {
    // Not in order, and with a gap of a week.
    const chart = await draw(page, "SELECT * FROM (VALUES (DATE '2026-01-12', 3), (DATE '2026-01-01', 1), (DATE '2026-01-02', 2), (DATE '2026-01-04', 4)) AS t(day, n)");
    assert.equal(await page.getByLabel("Time zone of the axis").isVisible(), false, "days have no zone");
    const points = (await chart.locator("path.series-0").getAttribute("d")).slice(1).split("L").map((point) => Number(point.split(",")[0]));
    assert.equal(points.length, 4);
    const day = points[1] - points[0];
    assert.ok(day > 5);
    assert.ok(Math.abs(points[2] - points[1] - 2 * day) < 1 && Math.abs(points[3] - points[2] - 8 * day) < 1, String(points));
    for (const label of await labels(chart)) assert.match(label, /^2026-01-\d\d$/);
    await page.getByRole("group", { name: /^Chart/ }).focus();
    await page.keyboard.press("End");
    assert.match(await page.locator(".result-chart-frame .chart-tip").innerText(), /2026-01-12\s+·\s+n 3/);
  },

  async "puts bars of times where they are, each as wide as the shortest time between them"(page) {
    const chart = await draw(page, "SELECT * FROM (VALUES (DATE '2026-01-12', 3), (DATE '2026-01-01', 1), (DATE '2026-01-02', 2), (DATE '2026-01-04', 4)) AS t(day, n)");
    await page.getByLabel("Kind of chart").selectOption("bar");
    await chart.locator("rect.series-0").nth(3).waitFor();
    const [x, width] = [await numbers(chart.locator("rect.series-0"), "x"), await numbers(chart.locator("rect.series-0"), "width")];
    const day = x[1] - x[0];
    assert.ok(Math.abs(x[2] - x[1] - 2 * day) < 1 && Math.abs(x[3] - x[2] - 8 * day) < 1, String(x));
    assert.ok(Math.abs(width[0] + 1 - 0.8 * day) < 1.5, `${width[0]} of ${day}`);
    const { right } = await chart.evaluate((svg) => ({ right: svg.viewBox.baseVal.width }));
    assert.ok(x[3] + width[3] < right && x[0] > 0, "none is cut off");
    for (const label of await labels(chart)) assert.match(label, /^2026-01-\d\d$/);
    await page.getByRole("group", { name: /^Chart/ }).focus();
    await page.keyboard.press("End");
    assert.match(await page.locator(".result-chart-frame .chart-tip").innerText(), /2026-01-12\s+·\s+n 3/);
    // One time twice: the bars stand beside each other.
    const other = await draw(page, "SELECT * FROM (VALUES (DATE '2026-01-01', 1), (DATE '2026-01-01', 2), (DATE '2026-03-01', 3)) AS t(day, n)");
    await page.getByLabel("Kind of chart").selectOption("bar");
    await other.locator("rect.series-0").nth(2).waitFor();
    const places = await numbers(other.locator("rect.series-0"), "x");
    assert.ok(Math.abs(places[2] - places[1] - (places[1] - places[0])) < 1, String(places));
    assert.equal((await labels(other)).length, 0);
    // One bar alone.
    const alone = await draw(page, "SELECT DATE '2026-01-01' AS day, 7 AS n");
    await page.getByLabel("Kind of chart").selectOption("bar");
    assert.deepEqual(await labels(alone).then((all) => all.length > 0), true);
    assert.equal(await alone.locator("rect.series-0").count(), 1);
  },

  async "labels moments in the zone that is chosen, over the change of clocks"(page) {
    const chart = await draw(page, "SELECT TIMESTAMPTZ '2026-03-27 23:00:00+00' + value * INTERVAL '1 hour' AS at, value AS n FROM generate_series(0, 95) AS s(value)");
    const zone = page.getByLabel("Time zone of the axis");
    await zone.selectOption("UTC");
    const ticks = async () => chart.locator("line.tick").evaluateAll((all) => all.map((line) => Number(line.getAttribute("x1"))));
    const utc = Object.fromEntries((await labels(chart)).map((label, index) => [label, index]));
    assert.ok("2026-03-29" in utc, Object.keys(utc).join());
    await zone.selectOption("Europe/Berlin");
    const [berlin, places] = [await labels(chart), await ticks()];
    const at = (label) => places[berlin.indexOf(label)];
    // There, the 29th has 23 hours, and the first point is a midnight.
    assert.ok(["2026-03-28", "2026-03-29", "2026-03-30", "2026-03-31"].every((label) => berlin.includes(label)), berlin.join());
    const share = (at("2026-03-30") - at("2026-03-29")) / (at("2026-03-29") - at("2026-03-28"));
    assert.ok(Math.abs(share - 23 / 24) < 0.004, `${share}`);
    await page.getByRole("group", { name: /^Chart/ }).focus();
    for (const [key, text] of [["Home", "2026-03-28 00:00:00"], ["End", "2026-04-01 00:00:00"]]) {
      await page.keyboard.press(key);
      assert.ok((await page.locator(".result-chart-frame .chart-tip").innerText()).startsWith(text), `${key}: ${await page.locator(".result-chart-frame .chart-tip").innerText()}`);
    }
  },

  async "finds ticks for any span, in many zones"(page) {
    // By another way than the page's: each tick is looked at by the browser's own calendar.
    const wrong = await page.evaluate(async () => {
      const { timeOf, timeTicks, timeText } = await import("/js/time-axis.js");
      const found = [];
      const starts = ["2026-03-29 00:30:00Z", "2025-10-26T00:59:59.5+00", "2024-02-28 23:00:00-0530", "1999-12-31 23:59:59Z", "2026-07-01"].map(timeOf);
      for (const zone of ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]) {
        for (const start of starts) {
          for (const span of [2e3, 5e4, 4e6, 9e6, 9e7, 7e8, 4e9, 9e10, 8e11, 4e12]) {
            const ticks = timeTicks(start, start + span, 8, zone);
            const own = (at) => new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }).format(at);
            if (ticks.length > 9) found.push(`${zone} ${span}: ${ticks.length} ticks`);
            if (span > 4e6 && ticks.length === 0) found.push(`${zone} ${start} ${span}: none`);
            for (const { at, label } of ticks) {
              const text = own(at);
              const isThere = at >= start && at <= start + span;
              const fits = label.length > 8 ? text.startsWith(label) : label.includes(":") ? text.slice(11).startsWith(label) : text.startsWith(label) && text.slice(8, 10) === "01";
              if (!isThere || !fits || timeText(at, zone).slice(0, 19) !== text) found.push(`${zone} ${span}: ${label} at ${text}`);
            }
          }
        }
      }
      return found.slice(0, 10);
    });
    assert.deepEqual(wrong, []);
  },

  async "charts fit any width, and axe finds nothing in them"() {
    const { axe } = await import("./access-tests.mjs");
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1440, 1024, 390]) {
        const page = await open({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
        try {
          await draw(page, "SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' + value * INTERVAL '1 hour' AS at, value AS n, 100 - value AS m FROM generate_series(0, 95) AS s(value)");
          await page.getByRole("group", { name: "Values" }).getByLabel("m").check();
          await page.getByRole("checkbox", { name: "stacked" }).check();
          await page.evaluate(axe);
          const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map(({ id, nodes }) => `${id}: ${nodes[0].target.join(" ")}`));
          assert.deepEqual(found, [], `${colorScheme}, ${width}`);
          assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${width}`);
          assert.deepEqual(page.offences, []);
        } finally {
          await page.context().close();
        }
      }
    }
  },
};
