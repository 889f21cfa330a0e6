import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { verify } from "@octokit/webhooks-methods";

import { installGenerator, makeClient, PYTHON_GENERATOR } from "../../../scripts/sdk.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { PASSWORD } from "../../support/api.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { pythonWith } from "../../support/processes/python.ts";
import { Receiver } from "../../support/network/receiver.ts";
import { startWebhooks, type WebhookWorld } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

// Generates clients from the OpenAPI description and runs them against the API and its dispatcher.

const stores = fixture(createTestSchedule);

const isOnline = installGenerator();
if (!isOnline) console.log("The TypeScript client is not made: its generator is out of reach.");

test.skipIf(!isOnline)(
  "a generated TypeScript client signs in, subscribes, pages and handles errors",
  async () => {
    const made = join(folder, "client");
    await makeClient("typescript", root, made);
    const flow = join(made, "flow.ts");
    copyFileSync(join(FLOWS, "flow.ts.txt"), flow);
    await expectFlow([process.execPath, flow]);
  },
);

const path = process.env["PATH"] ?? "";
const python = pythonWith("sdk", [`${PYTHON_GENERATOR}==0.29.1`]);
if (python === undefined)
  console.log(
    "The Python client is not made: there is no Python, or its generator is out of reach.",
  );

test.skipIf(python === undefined)("a generated Python client does the same", async () => {
  process.env["PATH"] = `${dirname(python ?? "")}:${path}`;
  await makeClient("python", root, join(folder, "reviewrelay_client"));
  process.env["PATH"] = path;
  copyFileSync(join(FLOWS, "flow.py"), join(folder, "flow.py"));
  await expectFlow([python ?? "", "flow.py"]);
});

const FLOWS = join(import.meta.dir, "../../sdk");

let world: WebhookWorld;

let root: string;

let dispatcher: { stop(): Promise<void> };

let receiver: Receiver;

let folder: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "sdk-"));
  world = await startWebhooks({ schedule: stores.schedule });
  world.clock.set(systemClock.now());
  root = world.api.listen();
  const { db } = world.database;
  dispatcher = startDispatcher({ db, box: world.api.deps.box, schedule: stores.schedule });
  receiver = await Receiver.start();
});

afterEach(async () => {
  await dispatcher.stop();
  await receiver.stop();
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function expectFlow(command: string[]): Promise<void> {
  const { email } = world.tenants.partners[0].owner;
  const run = Bun.spawn([...command, root, email, PASSWORD, receiver.url], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, problems] = await Promise.all([run.stdout.text(), run.stderr.text()]);
  expect([await run.exited, problems]).toEqual([0, ""]);
  const { secret, ...rest } = JSON.parse(out);
  expect(rest).toEqual({
    state: "delivered",
    pages: 2,
    codes: ["slot_occupied", "unauthenticated"],
  });
  const [delivery] = receiver.received;
  const headers = delivery?.headers ?? {};
  const signature = headers["x-svc-signature"] ?? "";
  expect(await verify(secret, delivery?.body ?? "", signature)).toBe(true);
  expect([headers["x-svc-event"], headers["x-svc-test"]]).toEqual(["review_received", "1"]);
}
