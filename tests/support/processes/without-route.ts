// Runs without a network. Prints the fault that each attempt shows, and what it shows to work.
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { checkWebhookUrl, parseNetworks } from "../../../src/lib/egress.ts";

const policy = { allowHttp: true, allowedNetworks: parseNetworks("0.0.0.0/0 ::/0") };
const lookup = () => Promise.resolve(["203.0.113.5", "2001:db8::5"]);
const client = new HttpClient({ policy, lookup });
const shown: unknown[] = [];
for (const host of ["203.0.113.5", "[2001:db8::5]", "both.test"]) {
  const checked = checkWebhookUrl(`http://${host}:1/`, policy);
  if (checked.kind === "refused") throw new Error(checked.reason);
  const result = await client.post(checked.target, { headers: {}, body: "" });
  const fault = "fault" in result ? result.fault : undefined;
  shown.push([host, result.kind, fault ?? null, result.works?.includes("network")]);
}
console.log(JSON.stringify(shown));
client.close();
