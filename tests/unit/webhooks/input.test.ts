import { describe, expect, test } from "bun:test";

import { Problem } from "../../../src/lib/problem.ts";
import { readNewSubscription } from "../../../src/webhooks/routes/subscriptions.ts";

describe("webhook_url", () => {
  test("is accepted when all its addresses are public", async () => {
    expect(await errorsOf(["93.184.215.14", "2606:2800:21f:cb07::1"])).toBeUndefined();
  });

  test("is rejected when one of its addresses is not", async () => {
    const errors = await errorsOf(["93.184.215.14", "10.0.0.1"]);
    expect(errors).toEqual({ webhook_url: ["must resolve to a public address"] });
  });

  test("is accepted when its name does not resolve", async () => {
    expect(await errorsOf(new Error("ENOTFOUND"))).toBeUndefined();
  });
});

const egress = { allowHttp: false, allowedNetworks: [] };

const body = { label: "L", webhook_url: "https://partner.example/", delivery_kind: "immediate" };

async function errorsOf(addresses: string[] | Error, fields: object = {}) {
  const lookup = async () => {
    if (addresses instanceof Error) throw addresses;
    return addresses;
  };
  try {
    await readNewSubscription({ egress, lookup }, { ...body, ...fields });
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error.errors;
    throw error;
  }
}
