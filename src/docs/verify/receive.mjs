// WEBHOOK_SECRET=... PORT=4000 node receive.mjs
import { createServer } from "node:http";

import { isSigned } from "./verify.mjs";

const secret = process.env.WEBHOOK_SECRET;
if (!secret) throw new Error("Set WEBHOOK_SECRET to the subscription's secret.");
const handled = new Set(); // store these in a database table

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  response.writeHead(answer(request.headers, Buffer.concat(chunks))).end();
}).listen(Number(process.env.PORT ?? 4000), "127.0.0.1");

function answer(headers, body) {
  const signatures = [headers["x-svc-signature"], headers["x-svc-signature-previous"]];
  if (!isSigned(secret, body, ...signatures)) return 401;
  const event = JSON.parse(body);
  if (Math.abs(Date.now() - Date.parse(event.delivered_at)) > 300_000) return 401;
  if (handled.has(event.event_id)) return 200;
  console.log(event.event, event.event_id); // put the event into your queue
  handled.add(event.event_id);
  return 204;
}
