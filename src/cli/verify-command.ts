import { readFileSync } from "node:fs";

import { parseInstant } from "../lib/clock.ts";
import { fieldsOf } from "../lib/fields.ts";
import { checkedBody, SignatureError } from "../sdk/typescript/src/verify.ts";
import { type Command, connect, show, WEBHOOK } from "./command.ts";
import { chooseSubscription, secretOf } from "./server.ts";
import { EXIT, Failure, readAll, type CommandContext, usage } from "./context.ts";

const MAX_AGE_S = 31_536_000;

export const verify: Command = {
  name: "verify",
  words: "--signature sha256=… [FILE]",
  summary: "verify the signature of a body from a file or standard input",
  more: `The secret is read from WEBHOOK_SECRET or, if it is not set, from the API, which records this in the audit log.
Exit status 0: valid, 1: invalid.`,
  flags: {
    ...WEBHOOK,
    signature: { type: "string", help: "the header X-SVC-Signature" },
    previous: { type: "string", help: "the header X-SVC-Signature-Previous, if there is one" },
    "max-age": {
      type: "string",
      help: "reject a body with a delivered_at older than this, in seconds",
    },
  },
  wordCount: [0, 1],
  async run(context, given) {
    const { env } = context;
    const signature = given.text("signature");
    if (signature === undefined)
      throw usage("Give the value of X-SVC-Signature: --signature sha256=…");
    const maxAgeS = given.number("max-age", [1, MAX_AGE_S]);
    const [file] = given.words;
    const body = file === undefined ? await readAll(context.stdin) : readFile(file);
    let secret = env["WEBHOOK_SECRET"];
    if (secret === undefined) {
      const server = connect(context, given);
      secret = await secretOf(env, server, await chooseSubscription(server, given.text("webhook")));
    }
    if (secret.startsWith("whsec_"))
      throw usage(
        "WEBHOOK_SECRET is in the Standard Webhooks format. Set the plain secret, which is the base64-decoded text after whsec_.",
      );
    const headers = {
      "x-svc-signature": signature,
      "x-svc-signature-previous": given.text("previous"),
    };
    const verdict = verdictOf(secret, body, headers);
    const isTooOld = maxAgeS !== undefined && !isRecent(context, body, maxAgeS);
    const isGood = verdict === "valid" && !isTooOld;
    const words = isTooOld && verdict === "valid" ? "valid, but too old" : verdict;
    show(context, given, { signature: verdict, too_old: isTooOld }, `The signature is ${words}.`);
    return isGood ? EXIT.ok : EXIT.failed;
  },
};

function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Failure(EXIT.failed, `${path} cannot be read.`, { cause: error });
  }
}

/**
 * Returns whether the POST was sent within the maximum age. A body without `delivered_at`, such as that of
 * `payload_mode` minimal, counts as too old.
 */
function isRecent({ clock }: CommandContext, body: Buffer, maxAgeS: number): boolean {
  try {
    const { delivered_at: deliveredAt } = fieldsOf(JSON.parse(body.toString()));
    const at = parseInstant(String(deliveredAt));
    return at !== undefined && clock.now().getTime() - at.getTime() <= maxAgeS * 1_000;
  } catch {
    return false;
  }
}

export type Verdict = "valid" | "invalid" | "missing";

/**
 * Verifies the signatures in the headers of a POST, whose names may be in upper or lower case. The age of the POST does
 * not count.
 */
export function verdictOf(
  secret: string,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Verdict {
  if (!Object.keys(headers).some((name) => name.toLowerCase() === "x-svc-signature"))
    return "missing";
  try {
    checkedBody(body, headers, secret, { toleranceS: Infinity });
    return "valid";
  } catch (error) {
    if (error instanceof SignatureError) return "invalid";
    throw error instanceof TypeError ? usage(error.message) : error;
  }
}
