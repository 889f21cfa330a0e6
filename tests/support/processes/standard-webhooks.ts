import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Webhook } from "standardwebhooks";

import { lacks, skipped } from "../needs.ts";
import { GO_ENV } from "./go.ts";
import { pythonWith } from "./python.ts";

/** A delivery as a receiver gives it to a library of Standard Webhooks, with the secret that the receiver has. */
interface Delivery {
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Lets a published library check deliveries, and answers which of them it accepts. */
type Verifier = (deliveries: readonly Delivery[]) => Promise<boolean[]>;

const FOLDER = join(import.meta.dir, "../../../.cache/standard-webhooks");

/** Published libraries of Standard Webhooks by language; undefined without the language or a registry for its library. */
export const VERIFIERS: Readonly<Record<string, () => Verifier | undefined>> = {
  JavaScript: () => async (deliveries) => deliveries.map(isAccepted),
  Python: () => {
    const python = pythonWith("standard-webhooks", ["standardwebhooks==1.1.0"]);
    return python === undefined ? undefined : verifierOf([python, "-c", PYTHON]);
  },
  Go: () => {
    const command = buildGo();
    return command === undefined ? undefined : verifierOf([command]);
  },
};

function isAccepted({ secret, headers, body }: Delivery): boolean {
  try {
    new Webhook(secret).verify(body, { ...headers });
    return true;
  } catch {
    return false;
  }
}

/** Gives a program one delivery on each line as JSON; it answers one verdict on each line. */
function verifierOf(command: readonly string[]): Verifier {
  return async (deliveries) => {
    const child = Bun.spawn([...command], {
      stdin: Buffer.from(deliveries.map((one) => `${JSON.stringify(one)}\n`).join("")),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    const verdicts = out.trimEnd().split(/\r?\n/);
    if (verdicts.length !== deliveries.length) throw new Error(`The program failed: ${out}${err}`);
    return verdicts.map((one) => one === "accepted");
  };
}

const PYTHON = `
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
for line in sys.stdin:
    one = json.loads(line)
    try:
        Webhook(one["secret"]).verify(one["body"].encode(), one["headers"])
        print("accepted")
    except WebhookVerificationError:
        print("refused")
`;

const GO = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var one struct {
			Secret, Body string
			Headers      map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		headers := http.Header{}
		for name, value := range one.Headers {
			headers.Set(name, value)
		}
		webhook, err := standardwebhooks.NewWebhook(one.Secret)
		if err == nil {
			err = webhook.Verify([]byte(one.Body), headers)
		}
		if err == nil {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
	}
}
`;

function buildGo(): string | undefined {
  if (lacks("go")) return undefined;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "main.go"), GO);
  writeFileSync(join(FOLDER, "go.mod"), "module example.com/app\n");
  const steps = [
    ["go", "get", "github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1"],
    ["go", "build", "-o", "verify", "main.go"],
  ];
  const env = { ...process.env, ...GO_ENV };
  const options = {
    cwd: FOLDER,
    env,
    stdout: "ignore",
    stderr: "ignore",
    timeout: 120_000,
  } as const;
  if (steps.every((command) => Bun.spawnSync(command, options).success))
    return join(FOLDER, "verify");
  skipped("proxy of Go modules");
  return undefined;
}
