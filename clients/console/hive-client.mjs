// A client of HiveServer2, as small as can be: Thrift's binary protocol over HTTP.
//
// Environment: STOA_HIVE_PORT.

import http from "node:http";

const [I32, STRING, STRUCT, BOOL] = [8, 11, 12, 2];
const STOP = Buffer.from([0]);

/** @param {number} value */
const int = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value | 0);
  return bytes;
};
const text = (value) => {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  return Buffer.concat([int(bytes.length), bytes]);
};
const field = (type, id, value) => Buffer.concat([Buffer.from([type, id >> 8, id & 255]), value]);
const struct = (...fields) => Buffer.concat([...fields, STOP]);

/** Calls a function with a request; gives the bytes of the answer. */
function call(name, request) {
  const message = Buffer.concat([int(0x80010001), text(name), int(1), struct(field(STRUCT, 1, request))]);
  return new Promise((resolve, reject) => {
    const asked = http.request({
      host: "127.0.0.1", port: process.env.STOA_HIVE_PORT, path: "/cliservice", method: "POST",
      headers: { "content-type": "application/x-thrift", "content-length": message.length },
    }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => (answer.statusCode === 200 ? resolve(Buffer.concat(parts)) : reject(new Error(`${name}: HTTP ${answer.statusCode}`))));
    });
    asked.on("error", reject);
    asked.end(message);
  });
}

/** The guid and the secret of the first handle in an answer: two texts of 16 bytes, fields 1 and 2 of a struct. */
function handle(answer) {
  const begin = Buffer.from([STRING, 0, 1, 0, 0, 0, 16]);
  const at = answer.indexOf(begin);
  if (at < 0) throw new Error(`no handle in ${answer.toString("latin1")}`);
  const guid = answer.subarray(at + 7, at + 23);
  return struct(field(STRUCT, 1, struct(field(STRING, 1, text(guid)), field(STRING, 2, text(answer.subarray(at + 30, at + 46))))));
}

/** Opens a session of a user, without a password. */
export async function openHiveSession(user) {
  const session = handle(await call("OpenSession", struct(field(I32, 1, int(9)), field(STRING, 2, text(user)))));
  return {
    /** Begins a statement, without waiting for it. */
    run: (sql) => call("ExecuteStatement", struct(field(STRUCT, 1, session), field(STRING, 2, text(sql)), field(BOOL, 4, Buffer.from([1])))),
    close: () => call("CloseSession", struct(field(STRUCT, 1, session))),
  };
}
