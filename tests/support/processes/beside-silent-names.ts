// Starts deliveries to names with a DNS server that never answers, and prints as JSON how many of them were still
// pending
// after a delivery to a good name, a password hash and a file read. All three must not wait for the DNS lookups.
//   bun tests/support/processes/beside-silent-names.ts <deliveries> <url of a receiver that answers>
import { readFile } from "node:fs/promises";

import { createDeliver } from "../../../dispatcher/delivery/deliver.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { argon2 } from "../../../src/lib/foreign-hashes.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";

const [, , count = "", url = ""] = process.argv;
const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
const deliver = createDeliver({ clock: systemClock, client: new HttpClient({ policy }) });

let silent = 0;
for (; silent < Number(count);)
  void deliver({ url: `http://silent-${silent++}.test/`, headers: {}, body: "{}" }).then(
    () => silent--,
  );
const left = async (work: Promise<unknown>) => {
  await work;
  return silent;
};
const [lookup, hash, file] = await Promise.all([
  left(
    deliver({ url, headers: {}, body: "{}" }).then(({ kind }) => {
      if (kind !== "accepted") throw new Error(kind);
    }),
  ),
  left(argon2.hash("a password")),
  left(readFile("package.json")),
]);
console.log(JSON.stringify({ lookup, hash, file }));
process.exit(0);
