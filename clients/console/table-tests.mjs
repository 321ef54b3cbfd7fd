// What can be done to tables: made, loaded from files, renamed, compacted, expired, rolled back, dropped; always with the
// SQL shown first. What is there to see of them: statistics, sizes over time, the server's own tables.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

import { cell, go, json, open, post, until, url } from "./harness.mjs";

const TRIPS = fileURLToPath(new URL("fixtures/trips.parquet", import.meta.url));
const rowsOf = async (sql) => (await post(sql)).rows;
const details = (page) => page.getByRole("complementary", { name: "Table" });
const shownSql = (dialog) => dialog.getByLabel("SQL that runs").innerText();

async function openTable(page, name) {
  await page.goto(`${url}#/tables/public/${encodeURIComponent(name)}`);
  await details(page).locator("h2", { hasText: name }).waitFor();
}

async function fresh(name, columns = "n bigint") {
  await post(`DROP TABLE IF EXISTS "${name}"`);
  await post(`CREATE TABLE "${name}" (${columns})`);
}

/** Presses a button of the table, and gives the dialog that opens. */
async function press(page, label) {
  await details(page).getByRole("group", { name: "Change the table" }).getByRole("button", { name: label }).click();
  return page.getByRole("dialog");
}

/** Drops a file on the page Tables. */
async function dropFile(page, name, text) {
  const data = await page.evaluateHandle(([title, content]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([content], title));
    return transfer;
  }, [name, text]);
  const main = page.getByRole("main", { name: "Tables" });
  await main.dispatchEvent("dragenter", { dataTransfer: data });
  await page.locator("main.drop-here").waitFor();
  await main.dispatchEvent("drop", { dataTransfer: data });
  return page.getByRole("dialog");
}

const columnsIn = async (dialog) => dialog.locator(".columns-editor tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("input.text")].map((input) => input.value).join(" ")));

export const tableTests = {
  async "makes a table, renames it and drops it, with the SQL shown first"(page) {
    for (const name of ["console_made", "console_renamed"]) await post(`DROP TABLE IF EXISTS ${name}`);
    await go(page, "Tables");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Create a table" });
    assert.ok(await dialog.getByRole("button", { name: "Create" }).isDisabled(), "it has no name yet");
    await dialog.getByLabel("Table", { exact: true }).fill("console_made");
    await dialog.getByRole("button", { name: "Add a column" }).click();
    await page.keyboard.type("order");
    await dialog.getByLabel("Partitioned by").fill("month(day)");
    await dialog.getByLabel("Ordered by").fill("account_id");
    assert.equal(await shownSql(dialog), 'CREATE TABLE console_made (\n  day date,\n  account_id bigint,\n  amount decimal(18, 4),\n  "order" text\n)\nPARTITIONED BY (month(day))\nORDER BY (account_id);');
    await dialog.getByLabel("Ordered by").fill("nothing_like_it");
    await dialog.getByRole("button", { name: "Create" }).click();
    // What the server refuses stays to be mended.
    await dialog.locator(".dialog-trouble .badge").waitFor();
    await dialog.getByLabel("Ordered by").fill("account_id");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.waitFor({ state: "detached" });
    await details(page).locator("h2", { hasText: "console_made" }).waitFor();
    assert.match(await details(page).innerText(), /Partitioned by\s+month\(day\)/);
    const rename = await press(page, "Rename");
    await rename.getByLabel("New name").fill("console_renamed");
    assert.equal(await shownSql(rename), "ALTER TABLE console_made RENAME TO console_renamed;");
    await page.keyboard.press("Enter");
    await details(page).locator("h2", { hasText: "console_renamed" }).waitFor();
    const drop = await press(page, "Drop");
    assert.equal(await shownSql(drop), "DROP TABLE console_renamed;");
    await drop.getByRole("button", { name: "Cancel" }).click();
    assert.equal((await rowsOf("SELECT count(*) FROM console_renamed")).length, 1, "nothing runs that was not asked for");
    await (await press(page, "Drop")).getByRole("button", { name: "Drop", exact: true }).click();
    await details(page).waitFor({ state: "hidden" });
    const rows = page.getByRole("grid", { name: "Tables" }).locator("tbody tr", { hasText: "console_renamed" });
    await until("it is gone from the list", async () => (await rows.count()) === 0);
    assert.deepEqual(await rowsOf("SELECT count(*) FROM information_schema.tables WHERE table_name = 'console_renamed'"), [[0]]);
  },

  async "compacts a table, and expires its snapshots"(page) {
    await fresh("console_many");
    await post("ALTER TABLE console_many SET TBLPROPERTIES ('stoa.compaction.min-input-files' = '100')");
    for (const n of [1, 2, 3]) await post(`INSERT INTO console_many VALUES (${n}); FLUSH TABLE console_many`);
    await openTable(page, "console_many");
    const compact = await press(page, "Compact");
    assert.equal(await shownSql(compact), "COMPACT TABLE console_many;");
    await compact.getByLabel(/^All files/).check();
    assert.equal(await shownSql(compact), "COMPACT TABLE console_many FULL;");
    await compact.getByRole("button", { name: "Compact" }).click();
    await page.locator(".toast.shown", { hasText: "3 files of" }).waitFor();
    assert.equal((await json("v1/tables/public/console_many")).files, 1);
    const expire = await press(page, "Expire snapshots");
    assert.equal(await shownSql(expire), "EXPIRE SNAPSHOTS FROM console_many;");
    await expire.getByRole("button", { name: "Expire" }).click();
    // Those of the last minutes stay, for whoever reads them.
    await page.locator(".toast.shown", { hasText: "0 snapshots, 0 data files" }).waitFor();
  },

  async "rolls a table back to a version, and forward again"(page) {
    await fresh("console_back");
    for (const n of [1, 2, 3]) await post(`INSERT INTO console_back VALUES (${n}); FLUSH TABLE console_back`);
    await post("INSERT INTO console_back VALUES (4)");
    const all = (await json("v1/tables/public/console_back")).snapshots;
    await openTable(page, "console_back");
    await details(page).getByRole("button", { name: "Snapshots", exact: true }).click();
    await details(page).locator("td", { hasText: "(current)" }).waitFor();
    await details(page).getByRole("img", { name: /^Size after each commit: 3/ }).waitFor();
    const back = details(page).getByRole("button", { name: "Roll back" });
    assert.equal(await back.count(), 2, "not to the current one");
    await back.last().click();
    const dialog = page.getByRole("dialog");
    assert.equal(await shownSql(dialog), `ALTER TABLE console_back ROLLBACK TO VERSION ${all.at(-1).id};`);
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.locator(".toast.shown", { hasText: "4 rows became 1" }).waitFor();
    assert.deepEqual(await rowsOf("SELECT n FROM console_back"), [[1]]);
    // The version before has the row that was fresh.
    await until("the new versions are listed", async () => (await back.count()) === 4);
    await back.first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await until("all rows are back", async () => String(await rowsOf("SELECT n FROM console_back ORDER BY n")) === "1,2,3,4");
  },

  async "makes a table of a CSV file that is dropped, and names a bad line"(page) {
    await post("DROP TABLE IF EXISTS trips_2026");
    await go(page, "Tables");
    const lines = ["id;Base name;day;fare", ...Array.from({ length: 500 }, (_, n) => `${n};"base; ${n % 7}";2026-01-${String(1 + (n % 28)).padStart(2, "0")};${n / 4}`)];
    const dialog = await dropFile(page, "Trips 2026.csv", `${lines.join("\n")}\n`);
    assert.equal(await dialog.getByLabel("Table", { exact: true }).inputValue(), "trips_2026");
    await dialog.getByLabel("Delimiter").selectOption(";");
    await until("the columns are inferred again", async () => (await columnsIn(dialog)).length === 4);
    assert.deepEqual(await columnsIn(dialog), ["id bigint", "base_name text", "day date", "fare double precision"]);
    await dialog.getByLabel("Type of fare").fill("decimal(10, 2)");
    await dialog.getByLabel("Name of the column").nth(1).fill("base");
    await dialog.getByLabel("Ordered by").fill("id");
    assert.equal(await shownSql(dialog), "CREATE TABLE trips_2026 (\n  id bigint,\n  base text,\n  day date,\n  fare decimal(10, 2)\n)\nORDER BY (id);\n\n" +
      "COPY trips_2026 FROM STDIN WITH (format 'csv', header 'true', delimiter ';', columns 'id,base,day,fare');");
    await dialog.getByRole("button", { name: "Load", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(await rowsOf("SELECT count(*), sum(id)::bigint, sum(fare)::text, count(DISTINCT base) FROM trips_2026"), [[500, 124750, "31187.50", 7]]);
    await details(page).locator("h2", { hasText: "trips_2026" }).waitFor();
    // Into the table that is there; a line that does not fit is named, and nothing of the file stays.
    const again = await dropFile(page, "trips_2026.csv", "id,base,day,fare\n1,a,2026-01-01,1\n2,b,2026-01-02,much\n");
    assert.equal(await again.getByText("Partitioned by").isVisible(), false, "its columns are there already");
    assert.match(await shownSql(again), /^COPY trips_2026 FROM STDIN WITH \(format 'csv', header 'true'\);$/);
    await again.getByRole("button", { name: "Load", exact: true }).click();
    await again.locator(".dialog-trouble", { hasText: /trips_2026\.csv line 3, column "fare": "much"/ }).waitFor();
    assert.deepEqual(await rowsOf("SELECT count(*) FROM trips_2026"), [[500]]);
    await again.getByLabel("Table", { exact: true }).fill("trips_bad");
    await again.getByLabel("Type of fare").fill("bigint");
    await again.getByRole("button", { name: "Load", exact: true }).click();
    await again.locator(".dialog-trouble", { hasText: /line 3/ }).waitFor();
    await until("the table that was made for it is dropped", async () => (await rowsOf("SELECT count(*) FROM information_schema.tables WHERE table_name = 'trips_bad'"))[0][0] === 0);
    await again.getByLabel("Type of fare").fill("text");
    await again.getByRole("button", { name: "Leave out day" }).click();
    await again.getByRole("button", { name: "Load", exact: true }).click();
    await again.waitFor({ state: "detached" });
    assert.deepEqual(await rowsOf("SELECT id, base, fare FROM trips_bad ORDER BY id"), [[1, "a", "1"], [2, "b", "much"]]);
    await post("DROP TABLE trips_bad");
  },

  async "makes a table of a Parquet file, as pyarrow wrote it"(page) {
    await post("DROP TABLE IF EXISTS trips");
    await go(page, "Tables");
    await page.getByLabel("File to load").setInputFiles(TRIPS);
    const dialog = page.getByRole("dialog");
    await dialog.locator(".dialog-note", { hasText: "parquet" }).waitFor();
    assert.deepEqual(await columnsIn(dialog), ["id bigint", "Base name text", "day date", "at timestamptz", "fare decimal(10, 2)", "shared boolean"].map((text) => text.replace("timestamptz", "timestamp with time zone")));
    await dialog.getByRole("button", { name: "Leave out shared" }).click();
    assert.match(await shownSql(dialog), /extra_columns 'ignore'/);
    await dialog.getByRole("button", { name: "Load", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(await rowsOf('SELECT count(*), sum(id)::bigint, count("Base name"), sum(fare)::text FROM trips'), [[1000, 499500, 900, "124875.00"]]);
    const damaged = await dropFile(page, "damaged.parquet", "PAR1, and nothing else that is Parquet");
    await damaged.locator(".bad", { hasText: "damaged.parquet" }).waitFor();
    await damaged.getByRole("button", { name: "Close" }).click();
    await dropFile(page, "picture.png", "no rows");
    await page.getByRole("dialog").locator(".bad", { hasText: "picture.png" }).waitFor();
    await page.keyboard.press("Escape");
    await post("DROP TABLE trips");
  },

  async "sends files that are larger than what the server takes at once"(page) {
    await post("DROP TABLE IF EXISTS console_large");
    await go(page, "Tables");
    const lines = 1_000_000;
    const input = page.getByLabel("File to load");
    await input.evaluate((element, count) => {
      const parts = ["n,words\n"];
      for (let n = 0; n < count; n += 1000) parts.push(Array.from({ length: 1000 }, (_, m) => `${n + m},some words of line ${n + m}\n`).join(""));
      const transfer = new DataTransfer();
      transfer.items.add(new File(parts, "console_large.csv"));
      element.files = transfer.files;
      element.dispatchEvent(new Event("change"));
    }, lines);
    const dialog = page.getByRole("dialog");
    assert.deepEqual(await (async () => { await dialog.waitFor(); return columnsIn(dialog); })(), ["n bigint", "words text"]);
    await dialog.getByRole("button", { name: "Load", exact: true }).click();
    await dialog.getByRole("progressbar", { name: "Share of the file that was sent" }).waitFor();
    await dialog.waitFor({ state: "detached", timeout: 120_000 });
    assert.deepEqual(await rowsOf("SELECT count(*), sum(n)::text FROM console_large"), [[lines, String((lines * (lines - 1)) / 2)]]);
    await post("DROP TABLE console_large");
  },

  async "reads statistics of columns when it is asked to"(page) {
    await fresh("console_stats", "n bigint, \"Some name\" text, x double precision, l bigint[], b boolean");
    await post("INSERT INTO console_stats SELECT value, CASE WHEN value % 4 = 0 THEN 'name ' || (value % 3)::text END, value / 2.0, NULL, value > 5 FROM generate_series(1, 100) AS s(value)");
    await openTable(page, "console_stats");
    const before = (await json("v1/status")).totals.started;
    await details(page).getByRole("button", { name: "Statistics", exact: true }).click();
    assert.equal((await json("v1/status")).totals.started, before, "nothing is read before it is asked for");
    await details(page).getByRole("button", { name: "Read the table" }).click();
    const grid = details(page).getByRole("grid", { name: "Column statistics" });
    await grid.waitFor();
    const rows = await grid.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map((row) => row[0]), ["n", "Some name", "x", "l", "b"]);
    assert.deepEqual(rows[0].slice(1), ["none", rows[0][2], "1", "100"]);
    assert.ok(Math.abs(Number(rows[0][2].replace("≈ ", "")) - 100) <= 5, rows[0][2]);
    assert.deepEqual(rows[1], ["Some name", "75 (75 %)", "≈ 3", "name 0", "name 2"]);
    assert.deepEqual(rows[3].slice(1), ["100 (100 %)", "–", "–", "–"]);
    assert.deepEqual(rows[4].slice(1), ["none", "≈ 2", "false", "true"]);
    await details(page).getByRole("button", { name: "Show SQL" }).click();
    assert.equal((await post(await details(page).locator(".sql-panel pre").innerText())).rows.length, 5);
  },

  async "shows sizes of table partitions in the order of time"(page) {
    await openTable(page, "console_report");
    await details(page).getByRole("button", { name: "Files", exact: true }).click();
    const chart = details(page).getByRole("group", { name: /^Sizes of table partitions/ });
    assert.equal(await chart.locator(".size-bar").count(), 12);
    await chart.focus();
    await page.keyboard.press("Home");
    assert.match(await chart.locator(".size-tip").innerText(), /^day_month=2024-01: [\d.]+ K?i?B, 31 rows$/);
    await page.keyboard.press("End");
    assert.match(await chart.locator(".size-tip").innerText(), /^day_month=2024-12/);
  },

  async "has the server's own tables in the tree, and names of any length"(page) {
    const long = `console_${"a_long_name_".repeat(8)}of_a_table`;
    await fresh(long, Array.from({ length: 120 }, (_, n) => `column_number_${n}_${"x".repeat(30)} bigint`).join(", "));
    try {
      await page.reload();
      const tree = page.getByRole("tree", { name: "Tables" });
      const system = tree.locator('[data-key="system"]');
      await system.waitFor();
      assert.equal(await system.getAttribute("aria-expanded"), "false");
      await system.click();
      await tree.locator('[data-key="system.queries"]').click();
      await tree.locator('[data-key="system.queries.elapsed_ms"]').waitFor();
      const known = (await rowsOf("SELECT count(DISTINCT table_name) FROM information_schema.tables WHERE table_schema = 'system'"))[0][0];
      assert.equal(await tree.locator('.table-name[data-key^="system."]').count(), known);
      await system.focus();
      await page.keyboard.press("ArrowLeft");
      assert.equal(await tree.locator('.table-name[data-key^="system."]').count(), 0);
      await page.getByLabel("Filter tables").fill("executors");
      await tree.locator('[data-key="system.executors"]').hover();
      await tree.getByRole("button", { name: "First rows of system.executors" }).click();
      await cell(page, 0, 0).waitFor();
      await page.getByLabel("Filter tables").fill("");
      const row = tree.locator(".table-name", { hasText: long });
      assert.match(await row.getAttribute("title"), new RegExp(long));
      await openTable(page, long);
      const whole = await details(page).locator("h2").evaluate((head) => head.scrollWidth <= head.clientWidth + 1);
      assert.ok(whole, "the name is there to be read");
      await page.getByRole("group", { name: "Parts of columns" }).getByRole("button", { name: "Last" }).click();
      await details(page).getByText("column_number_119").waitFor();
    } finally {
      await post(`DROP TABLE ${long}`);
    }
  },

  async "axe finds nothing in what changes tables, at any width, in both themes"() {
    await fresh("console_axe");
    for (const n of [1, 2]) await post(`INSERT INTO console_axe VALUES (${n}); FLUSH TABLE console_axe`);
    const { axe } = await import("./access-tests.mjs");
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1440, 1024, 390]) {
        const page = await open({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true }, "#/tables");
        try {
          await page.evaluate(axe);
          const check = async (what) => {
            const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map(({ target, any }) => `${target.join(" ")} ${any[0]?.message ?? ""}`).join("; ")}`));
            assert.deepEqual(found, [], `${what}, ${colorScheme}, ${width}`);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(wide <= 0, `${what}, ${width}: ${wide} pixels too wide`);
          };
          await page.getByRole("button", { name: "Create", exact: true }).click();
          await check("creating");
          await page.keyboard.press("Escape");
          const dialog = await dropFile(page, "axe.csv", "id,name\n1,a\n2\n");
          await check("a file that cannot be read");
          await dialog.getByRole("button", { name: "Close" }).click();
          await dropFile(page, "axe.csv", "id,name\n1,a\n");
          await dialog.getByLabel("Type of id").fill("no such type");
          await dialog.getByRole("button", { name: "Load", exact: true }).click();
          await dialog.locator(".dialog-trouble .badge").waitFor();
          await check("loading a file");
          await page.keyboard.press("Escape");
          await openTable(page, "console_axe");
          for (const [section, wait] of [["Statistics", () => details(page).getByRole("button", { name: "Read the table" }).click()], ["Snapshots", () => details(page).getByRole("button", { name: "Roll back" }).first().waitFor()]]) {
            await details(page).getByRole("button", { name: section, exact: true }).click();
            await wait();
            if (section === "Statistics") await details(page).getByRole("grid", { name: "Column statistics" }).waitFor();
            await check(section);
          }
          await details(page).getByRole("button", { name: "Roll back" }).first().click();
          await check("rolling back");
          await page.keyboard.press("Escape");
          assert.deepEqual(page.offences, []);
        } finally {
          await page.context().close();
        }
      }
    }
  },
};
