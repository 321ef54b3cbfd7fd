// node-pg: values both ways, named statements, cursors, COPY streams, pools, errors.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import test, { after, before } from "node:test";
import { Cursor, address, columns, copyStreams, newName, pg } from "./drivers.mjs";

// Days as they are written, not as midnights of the client's zone.
pg.types.setTypeParser(1082, (text) => text);

let client;
before(async () => {
  client = new pg.Client(address);
  await client.connect();
});
after(() => client.end());

async function withTable(columns, work) {
  const name = newName();
  await client.query(`CREATE TABLE ${name} (${columns})`);
  try {
    await work(name);
  } finally {
    await client.query(`DROP TABLE ${name}`);
  }
}

test("values go there and back, prepared and not", () =>
  withTable(columns, async (name) => {
    const at = new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
    const row = ["1099511627776", 7, 0.5, "12.50", "it's \\ ü", true, "2026-01-02", at, at, Buffer.from([0, 255]), ["a, b", null, "{}"]];
    const text = `INSERT INTO ${name} VALUES ($1, $2, $3, $4, $5, $6, $7, $8::timestamptz, $9, $10, $11)`;
    for (const values of [row, row.map(() => null), row]) {
      assert.equal((await client.query({ name: "insert", text, values })).rowCount, 1);
    }
    const found = await client.query({ text: `SELECT * FROM ${name} WHERE i = $1`, values: [7], rowMode: "array" });
    assert.equal(found.rows.length, 2);
    const seen = found.rows[0];
    seen[7] = at; // a timestamp is of the client's zone
    assert.deepEqual(seen, row);
    assert.deepEqual(found.fields.map((f) => f.dataTypeID), [20, 23, 701, 1700, 25, 16, 1082, 1114, 1184, 17, 1009]);
    const nothing = await client.query(`SELECT * FROM ${name} WHERE i IS NULL`);
    assert.equal(nothing.rows[0].names, null);
  }));

test("several statements, of which one fails", async () => {
  const results = await client.query("SELECT 1::int AS a; SELECT 2::int AS b, 3::int AS b");
  assert.deepEqual(results.map((result) => result.rows), [[{ a: 1 }], [{ b: 3 }]]);
  await assert.rejects(client.query("SELECT 1; SELECT 1 / 0; SELECT 2"), { code: "22012" });
  assert.equal((await client.query("SELECT 'still here' AS t")).rows[0].t, "still here");
});

test("errors carry code, position and hint", () =>
  withTable("name text", async (name) => {
    await assert.rejects(client.query(`SELECT nme FROM ${name}`), (error) => {
      assert.equal(error.code, "42703");
      assert.equal(error.position, "8");
      assert.match(error.hint, /name/);
      return true;
    });
  }));

test("a cursor reads in parts", async () => {
  const cursor = client.query(new Cursor("SELECT n FROM generate_series(1, $1::int) s (n)", [10]));
  const read = [];
  for (let rows = await cursor.read(4); rows.length; rows = await cursor.read(4)) read.push(rows.length);
  assert.deepEqual(read, [4, 4, 2]);
  await cursor.close();
});

test("COPY both ways", () =>
  withTable("n bigint, t text", async (name) => {
    const lines = Array.from({ length: 1000 }, (_, n) => `${n}\ttext ${n}\n`);
    await pipeline(Readable.from(lines), client.query(copyStreams.from(`COPY ${name} FROM STDIN WITH (FORMAT text)`)));
    let text = "";
    const out = client.query(copyStreams.to(`COPY (SELECT * FROM ${name} ORDER BY n) TO STDOUT`));
    for await (const chunk of out) text += chunk;
    assert.equal(text, lines.join(""));
  }));

test("a pool with a transaction", () =>
  withTable("n bigint", async (name) => {
    const pool = new pg.Pool({ ...address, max: 4 });
    const sums = await Promise.all(Array.from({ length: 20 }, (_, n) => pool.query("SELECT $1::int + 1 AS sum", [n])));
    assert.deepEqual(sums.map((s) => s.rows[0].sum), Array.from({ length: 20 }, (_, n) => n + 1));
    const own = await pool.connect();
    await own.query("BEGIN");
    await own.query(`INSERT INTO ${name} VALUES (1)`);
    await own.query("ROLLBACK");
    own.release();
    assert.equal((await pool.query(`SELECT count(*)::int AS n FROM ${name}`)).rows[0].n, 0);
    await pool.end();
  }));

test("a statement that takes too long is stopped", async () => {
  const own = new pg.Client({ ...address, statement_timeout: 100 });
  await own.connect();
  await assert.rejects(own.query("SELECT count(*) FROM generate_series(1, 100000000000) s"), { code: "57014" });
  await own.end();
});
