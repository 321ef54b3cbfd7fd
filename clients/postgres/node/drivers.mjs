// What the tests of both drivers need: the drivers themselves, and a table of one's own.
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";

const require = createRequire((process.env.NODE_DRIVERS ?? import.meta.dirname) + "/");

export const pg = require("pg");
export const Cursor = require("pg-cursor");
export const copyStreams = require("pg-copy-streams");
export const postgres = require("postgres");

export const address = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: "stoa",
  database: "stoa",
};

export const columns =
  "l bigint, i int, d double precision, n numeric(12, 2), t text, b boolean, day date, at timestamp, seen timestamptz, raw bytea, names text[]";

export const newName = () => `t_${randomUUID().replaceAll("-", "").slice(0, 12)}`;
