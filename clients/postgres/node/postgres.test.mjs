// postgres.js: values both ways, helpers, pipelines, cursors, COPY, transactions, errors.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import test, { after } from "node:test";
import { address, columns, newName, postgres } from "./drivers.mjs";

const sql = postgres({ ...address, max: 3, onnotice: () => {} });
after(() => sql.end());

async function withTable(columns, work) {
  const name = newName();
  await sql.unsafe(`CREATE TABLE ${name} (${columns})`);
  try {
    await work(name);
  } finally {
    await sql.unsafe(`DROP TABLE ${name}`);
  }
}

test("values go there and back", () =>
  withTable(columns, async (name) => {
    const day = new Date(Date.UTC(2026, 0, 2));
    const seen = new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
    const row = { l: "1099511627776", i: 7, d: 0.5, n: "12.50", t: "it's \\ ü", b: true, day, seen, raw: Buffer.from([0, 255]), names: ["a, b", "{}"] };
    await sql`INSERT INTO ${sql(name)} ${sql(row)}`;
    await sql`INSERT INTO ${sql(name)} ${sql([{ l: null, i: 1 }, { l: 2, i: 2 }])}`;
    const [found] = await sql`SELECT * FROM ${sql(name)} WHERE i = ${7} AND t = ${row.t}`;
    assert.deepEqual({ ...found }, { ...row, at: null });
    const some = await sql`SELECT i FROM ${sql(name)} WHERE i IN ${sql([1, 2, 3])} ORDER BY i`;
    assert.deepEqual(some.map((r) => r.i), [1, 2]);
    const any = await sql`SELECT i FROM ${sql(name)} WHERE i = ANY(${[1, 7]}) ORDER BY i`;
    assert.deepEqual(any.map((r) => r.i), [1, 7]);
    assert.equal((await sql`DELETE FROM ${sql(name)} WHERE l IS NULL`).count, 1);
  }));

test("many queries at once", async () => {
  const sums = await Promise.all(Array.from({ length: 50 }, (_, n) => sql`SELECT ${n}::int + 1 AS sum`));
  assert.deepEqual(sums.map(([r]) => r.sum), Array.from({ length: 50 }, (_, n) => n + 1));
});

test("cursors and columns", async () => {
  const read = [];
  await sql`SELECT n FROM generate_series(1, 10) s (n)`.cursor(4, (rows) => { read.push(rows.length); });
  assert.deepEqual(read, [4, 4, 2]);
  const described = await sql`SELECT 1::int AS a, 'x'::text AS b WHERE 1 = ${1}`.describe();
  assert.deepEqual(described.columns.map((c) => [c.name, c.type]), [["a", 23], ["b", 25]]);
});

test("COPY both ways", () =>
  withTable("n bigint, t text", async (name) => {
    const lines = Array.from({ length: 1000 }, (_, n) => `${n}\ttext ${n}\n`);
    await pipeline(Readable.from(lines), await sql`COPY ${sql(name)} FROM STDIN WITH (FORMAT text)`.writable());
    let text = "";
    for await (const chunk of await sql`COPY (SELECT * FROM ${sql(name)} ORDER BY n) TO STDOUT`.readable()) text += chunk;
    assert.equal(text, lines.join(""));
  }));

test("transactions and savepoints", () =>
  withTable("n bigint", async (name) => {
    await assert.rejects(
      sql.begin(async (sql) => {
        await sql`INSERT INTO ${sql(name)} VALUES (1)`;
        await sql`SELECT 1 / 0`;
      }),
      { code: "22012" },
    );
    await sql.begin(async (sql) => {
      await sql`INSERT INTO ${sql(name)} VALUES (2)`;
      await sql.savepoint((sql) => sql`SELECT nothing`).catch(() => {});
    });
    assert.deepEqual((await sql`SELECT n FROM ${sql(name)}`).map((r) => r.n), ["2"]);
  }));

test("errors carry code and position", () =>
  withTable("name text", async (name) => {
    await assert.rejects(sql`SELECT nme FROM ${sql(name)}`, { code: "42703", position: "8" });
  }));

test("a query is cancelled", async () => {
  const query = sql`SELECT count(*) FROM generate_series(1, 100000000000) s`;
  setTimeout(() => query.cancel(), 100);
  await assert.rejects(query, { code: "57014" });
});
