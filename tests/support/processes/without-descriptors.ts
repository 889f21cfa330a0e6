// Makes 200 deliveries at once and prints the number of each outcome as JSON. Its test runs it with too few file
// descriptors for that many connections.
import { createDeliver } from "../../../dispatcher/delivery/deliver.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";
import { systemLookup } from "../../../src/lib/name-resolver.ts";

const port = process.argv[2];
const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8,::1/128") };
const client = new HttpClient({ policy, lookup: systemLookup });
const deliver = createDeliver({ clock: systemClock, client });

const hosts = Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? "127.0.0.1" : "localhost"));
const outcomes = await Promise.all(
  hosts.map((host) => deliver({ url: `http://${host}:${port}/`, headers: {}, body: "{}" })),
);
const counts: Record<string, number> = {};
for (const { kind } of outcomes) counts[kind] = (counts[kind] ?? 0) + 1;
console.log(JSON.stringify(counts));
process.exit(0);
