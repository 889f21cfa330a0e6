// Generates clients from /openapi.json with published generators and no options, compiles them, and has each list the
// subscriptions of a partner. The guide src/docs/guides/sdks.md names the generators.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

import type { NeedName } from "../../scripts/needs.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { lacks, skipped } from "../support/needs.ts";
import { PASSWORD } from "../support/api.ts";
import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { pythonWith } from "../support/processes/python.ts";

const LIMIT_MS = 1_200_000;
const OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
const FROM_NPM = {
  "@hey-api/openapi-ts": "0.99.0",
  "openapi-fetch": "0.17.0",
  "openapi-typescript": "7.13.0",
  typescript: "5.9.3",
};

/** The packages of Python contain openapi-generator 7.26.0 as its JAR, the same as on Maven Central. */
const python = pythonWith("generators", [
  "openapi-generator-cli==7.26.0",
  "openapi-python-client==0.29.1",
  "urllib3",
  "python-dateutil",
  "pydantic",
]);
const FOLDER = join(import.meta.dir, "../../.cache/generators");
const packages = await installed();

for (const { name, needs, has, run } of clients()) {
  test.skipIf(lacks(...needs) || !has)(
    `${name}: the client compiles and lists the subscriptions`,
    async () => expect(await run(mkdtempSync(join(work, "client-")))).toBe(String(subscription)),
    LIMIT_MS,
  );
}

/** Languages whose libraries these tests do not install: only the syntax of the client is checked. */
for (const [name, check, ending] of [
  ["php", "-l", ".php"],
  ["ruby", "-c", ".rb"],
] as const) {
  test.skipIf(lacks(name, "java") || python === undefined)(
    `openapi-generator ${name}: every file of the client has valid syntax`,
    async () => {
      const folder = mkdtempSync(join(work, "client-"));
      const sources = await sourcesOf(name, folder, ending);
      for (const file of sources) await output([name, check, file], folder);
    },
    LIMIT_MS,
  );
}

// No test compiles the client for C#.
test.skipIf(lacks("java") || python === undefined)(
  "openapi-generator csharp: the client is generated",
  async () => void (await sourcesOf("csharp", mkdtempSync(join(work, "client-")), ".cs")),
  LIMIT_MS,
);

/** Generates a client, and returns its source files. */
async function sourcesOf(language: string, folder: string, ending: string): Promise<string[]> {
  await openapiGenerator(language, folder);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => file.endsWith(ending));
  expect(sources.length).toBeGreaterThan(100);
  return sources;
}

const GO = `package main

import (
	"context"
	"fmt"
	"os"

	client "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	settings := client.NewConfiguration()
	settings.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	ctx := context.WithValue(context.Background(), client.ContextAccessToken, os.Args[2])
	page, _, err := client.NewAPIClient(settings).WebhooksAPI.ListSubscriptions(ctx).Execute()
	if err != nil {
		panic(err)
	}
	fmt.Println(page.Data[0].Id)
}
`;

const OAPI = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"list/client"
)

func main() {
	signed := client.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	})
	api, err := client.NewClientWithResponses(os.Args[1], signed)
	if err != nil {
		panic(err)
	}
	answer, err := api.ListSubscriptionsWithResponse(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.JSON200.Data[0].Id)
}
`;

const PYTHON = `
import sys
from openapi_client import ApiClient, Configuration, WebhooksApi
settings = Configuration(host=sys.argv[1], access_token=sys.argv[2])
print(WebhooksApi(ApiClient(settings)).list_subscriptions().data[0].id)
`;

const PYTHON_CLIENT = `
import sys
from made import AuthenticatedClient
from made.api.webhooks import list_subscriptions
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
print(list_subscriptions.sync(client=client).data[0].id)
`;

const JAVA = `
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.WebhooksApi;

public final class List {
    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient().setBasePath(args[0]);
        client.addDefaultHeader("Authorization", "Bearer " + args[1]);
        System.out.println(new WebhooksApi(client).listSubscriptions(null, null).getData().get(0).getId());
    }
}
`;

const TYPESCRIPT_FETCH = `
import { Configuration, WebhooksApi } from "./index";
const [basePath = "", token = ""] = process.argv.slice(2);
// Not \`accessToken\`, which the client sends without \`Bearer\`.
const headers = { Authorization: \`Bearer \${token}\` };
const page = await new WebhooksApi(new Configuration({ basePath, headers })).listSubscriptions();
console.log(page.data[0]?.id);
`;

const HEY_API = `
import { client } from "./client.gen";
import { listSubscriptions } from "./sdk.gen";
const [baseUrl = "", auth = ""] = process.argv.slice(2);
client.setConfig({ baseUrl, auth });
const { data } = await listSubscriptions({ throwOnError: true });
console.log(data.data[0]?.id);
`;

const OPENAPI_FETCH = `
import createClient from "openapi-fetch";
import type { paths } from "./schema";
const [baseUrl = "", token = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${token}\` } });
const { data } = await client.GET("/api/v1/partner/webhooks");
console.log(data?.data[0]?.id);
`;

const CONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: "esnext",
    module: "esnext",
    moduleResolution: "bundler",
    lib: ["esnext", "dom", "dom.iterable"],
    typeRoots: [join(import.meta.dir, "../../node_modules")],
    types: ["bun-types"],
    skipLibCheck: true,
  },
};

/** Type-checks a client with a program that uses it, and runs the program. */
async function runTypeScript(folder: string, program: string): Promise<string> {
  await Bun.write(join(folder, "list.ts"), program);
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify(CONFIG));
  const tsc = join(FOLDER, "node_modules/.bin/tsc");
  await output([process.execPath, "--bun", tsc, "-p", "."], folder);
  return output([process.execPath, "list.ts", api.root, token], folder);
}

async function openapiGenerator(language: string, folder: string): Promise<void> {
  const options = ["-g", language, "-i", document, "-o", folder];
  await output(
    [join(dirname(python ?? ""), "openapi-generator-cli"), "generate", ...options],
    folder,
  );
}

/** Installs the generators of npm into a folder of their own; returns false if the registry cannot be reached. */
async function installed(): Promise<boolean> {
  const wanted = { private: true, dependencies: FROM_NPM };
  await Bun.write(join(FOLDER, "package.json"), JSON.stringify(wanted));
  const options = { cwd: FOLDER, stdout: "ignore", stderr: "ignore" } as const;
  if (Bun.spawnSync([process.execPath, "install"], options).success) return true;
  return !skipped("registry with the generators of npm");
}

/** Returns the output of a command; throws with all that it printed if it fails. */
async function output(command: string[], cwd: string): Promise<string> {
  const env = { ...process.env, ...GO_ENV, GOFLAGS: `-mod=mod ${GO_ENV["GOFLAGS"]}` };
  const child = Bun.spawn(command, { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${out}${err}`);
  return out.trim();
}

const { api, tenants, stop } = await startAttackedApi();
// Below the generators' folder, where the clients find the packages of npm.
const work = mkdtempSync(join(FOLDER, "work-"));
const document = join(work, "openapi.json");
await Bun.write(document, await (await fetch(`${api.root}/openapi.json`)).text());
const signedIn = await api.login(tenants.partners[0].owner.email, PASSWORD);
const token = String(signedIn.body["token"]);
const made = await fetch(`${api.root}/api/v1/partner/webhooks`, {
  method: "POST",
  headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
  body: JSON.stringify({
    label: "Of a generated client",
    webhook_url: "https://partner.example/hooks",
    delivery_kind: "immediate",
  }),
});
const { id: subscription } = fieldsOf(await made.json());

afterAll(async () => {
  rmSync(work, { recursive: true });
  await stop();
});

interface Client {
  readonly name: string;
  readonly needs: readonly NeedName[];
  readonly has: boolean;
  /** Generates and compiles the client, and runs a program that prints the id of the first subscription. */
  run(folder: string): Promise<string>;
}

/** The clients, each with the steps that make it and call the API with it. */
function clients(): readonly Client[] {
  return [
    {
      name: "openapi-generator go",
      needs: ["java", "go"],
      has: python !== undefined,
      async run(folder) {
        await openapiGenerator("go", folder);
        await Bun.write(join(folder, "list/main.go"), GO);
        await output(["go", "mod", "tidy"], folder);
        await output(["go", "build", "-o", "program", "./list"], folder);
        return output([join(folder, "program"), api.root, token], folder);
      },
    },
    {
      name: "openapi-generator python",
      needs: ["java"],
      has: python !== undefined,
      async run(folder) {
        await openapiGenerator("python", folder);
        await output([python ?? "", "-m", "compileall", "-q", "openapi_client"], folder);
        return output([python ?? "", "-c", PYTHON, api.root, token], folder);
      },
    },
    {
      name: "openapi-generator typescript-fetch",
      needs: ["java"],
      has: python !== undefined && packages,
      async run(folder) {
        await openapiGenerator("typescript-fetch", folder);
        return runTypeScript(folder, TYPESCRIPT_FETCH);
      },
    },
    {
      name: "openapi-generator java",
      needs: ["java", "maven"],
      has: python !== undefined,
      async run(folder) {
        await openapiGenerator("java", folder);
        await Bun.write(join(folder, "src/main/java/List.java"), JAVA);
        const list = ["dependency:build-classpath", "-Dmdep.outputFile=classpath"];
        await output(["mvn", "-q", "-B", "compile", ...list], folder);
        const classpath = await Bun.file(join(folder, "classpath")).text();
        return output(
          ["java", "-cp", `target/classes:${classpath}`, "List", api.root, token],
          folder,
        );
      },
    },
    {
      name: "oapi-codegen",
      needs: ["go"],
      has: true,
      async run(folder) {
        await Bun.write(join(folder, "go.mod"), "module list\n\ngo 1.25\n");
        await Bun.write(join(folder, "main.go"), OAPI);
        mkdirSync(join(folder, "client"));
        const options = [
          "-package",
          "client",
          "-generate",
          "types,client",
          "-o",
          "client/client.go",
        ];
        await output(["go", "run", OAPI_CODEGEN, ...options, document], folder);
        await output(["go", "mod", "tidy"], folder);
        await output(["go", "build", "-o", "program", "."], folder);
        return output([join(folder, "program"), api.root, token], folder);
      },
    },
    {
      name: "@hey-api/openapi-ts",
      needs: [],
      has: packages,
      async run(folder) {
        const program = join(FOLDER, "node_modules/.bin/openapi-ts");
        const options = ["-i", document, "-o", folder, "-c", "@hey-api/client-fetch"];
        await output([process.execPath, "--bun", program, ...options], folder);
        return runTypeScript(folder, HEY_API);
      },
    },
    {
      name: "openapi-typescript",
      needs: [],
      has: packages,
      async run(folder) {
        const program = join(FOLDER, "node_modules/.bin/openapi-typescript");
        const options = [document, "-o", join(folder, "schema.ts")];
        await output([process.execPath, "--bun", program, ...options], folder);
        return runTypeScript(folder, OPENAPI_FETCH);
      },
    },
    {
      name: "openapi-python-client",
      needs: [],
      has: python !== undefined,
      async run(folder) {
        const program = join(dirname(python ?? ""), "openapi-python-client");
        const options = ["--output-path", join(folder, "made"), "--meta", "none"];
        await output([program, "generate", "--path", document, ...options], folder);
        return output([python ?? "", "-c", PYTHON_CLIENT, api.root, token], folder);
      },
    },
  ];
}
