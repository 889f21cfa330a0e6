// Builds the text that is shown after a successful start.
import { dirname, join, relative } from "node:path";

import type { Demo } from "./seed/seed-demo.ts";

interface Welcome {
  serverRoot: string;
  dataDir: string;
  mailDir: string | undefined;
  stores: string;
  dispatchers: number;
  demo: Demo | undefined;
}

export function welcome(facts: Welcome): string {
  const { serverRoot, dataDir, mailDir, demo } = facts;
  const lines = [
    "",
    `ReviewRelay is running: the API and ${facts.dispatchers === 1 ? "the dispatcher" : `${facts.dispatchers} dispatchers`}.`,
    "",
    `  API      ${demo?.base_url ?? serverRoot}`,
    `  Pages    ${serverRoot}/dashboard   ${serverRoot}/docs`,
    `  Health   ${serverRoot}/healthz   ${serverRoot}/readyz`,
    `  Stores   ${facts.stores}`,
    `  Data     ${dataDir}`,
    `  Logs     ${join(dataDir, "logs")}`,
    ...(mailDir === undefined
      ? []
      : [`  Mails    ${mailDir} (mails are stored here and not sent)`]),
    ...(demo === undefined ? withoutDemo() : tryNext(demo, shellPath(join(dataDir, "demo.json")))),
    "",
    "Stop with Ctrl-C. The data is kept for the next start.",
    "",
  ];
  return lines.join("\n");
}

function tryNext(demo: Demo, file: string): string[] {
  const owner = demo.users.find(({ role }) => role === "partner_owner");
  if (owner === undefined) return [];
  const environment = dirname(file) === ".data" ? "" : `DATA_DIR=${dirname(file)} `;
  const body = JSON.stringify({ email: owner.email, password: owner.password });
  return [
    `  Demo     ${file} (users, passwords, client, providers)`,
    "",
    `Sign in at ${demo.server_root}/dashboard as the owner of the first partner:`,
    "",
    `  ${owner.email}   ${owner.password}`,
    "",
    "Or run this in another terminal to follow one review to a webhook, step by step:",
    "",
    `  ${environment}npx -y bun@1.4.4 scripts/try.ts`,
    "",
    "Or call the API yourself:",
    "",
    `  TOKEN=$(curl -s ${demo.base_url}/login -H 'Content-Type: application/json' \\`,
    `    -d '${body}' | sed -n 's/.*"token":"\\([^"]*\\)".*/\\1/p')`,
    `  curl -s ${demo.base_url}/verify-token -H "Authorization: Bearer $TOKEN"; echo`,
    `  curl -s ${demo.base_url}/partner/webhooks -H "Authorization: Bearer $TOKEN"; echo`,
  ];
}

function withoutDemo(): string[] {
  return [
    "",
    "The database already had data, so no demo data was written and there is no demo.json.",
  ];
}

/** Returns the shortest form of a path that can be pasted into a shell. */
function shellPath(path: string): string {
  const short = relative(process.cwd(), path);
  const shown = short.startsWith("..") ? path : short;
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`;
}
