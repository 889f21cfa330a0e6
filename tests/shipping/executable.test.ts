// Uses the executables as they are built, out of the archives of a release, and in the image: as an unprivileged user in
// a root that has nothing else, with an empty database.
import { afterAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { connect } from "../../db/client.ts";
import { ROOT } from "../../db/executable.ts";
import * as use from "../../scripts/executables/use.ts";
import { COMMIT, VERSION } from "../../src/lib/version.ts";
import { lacks } from "../support/needs.ts";
import { builtExecutable } from "../support/processes/built-executable.ts";
import { EmptyRoot } from "../support/processes/empty-root.ts";

const SERVER = "/reviewrelay-server";
const COMMAND = "/reviewrelay";
/** Ends only a test that hangs. */
const LIMIT_MS = 1_200_000;
const OWN = `${process.platform}-${process.arch}`;

test("the executable lists its commands, and rejects others with EX_USAGE", async () => {
  const server = [await builtExecutable()];
  const run = (name: string) => use.run(server, [name], { folder: "/", env: {} });
  expect(await run("help")).toMatchObject({
    status: 0,
    out: expect.stringContaining("  migrate     "),
  });
  expect(await run("nonsense")).toMatchObject({
    status: 64,
    err: expect.stringContaining("Unknown command nonsense."),
  });
});

describe.skipIf(lacks("root", "mounts"))("as an unprivileged user in an empty root", () => {
  test("the server stops its dispatcher when its API ends, and fails", async () => {
    const installed = await install(await withBuilt());
    expect(await use.run(installed.server, ["migrate"], installed)).toMatchObject({ status: 0 });
    const all = await use.startAll(installed);
    ends.push(() => all.kill("SIGKILL"));
    const [, user] = /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${all.pid}/status`, "utf8")) ?? [];
    expect(user).toBe("10001");
    const children = readFileSync(`/proc/${all.pid}/task/${all.pid}/children`, "utf8");
    process.kill(Number(children.split(" ")[0]), "SIGKILL");
    expect(await all.exited).toBe(1);
    const serve = [use.isServing(installed, 0), use.isServing(installed, 1)];
    expect(await Promise.all(serve)).toEqual([false, false]);
  });

  test.skipIf(lacks("node", "python"))(
    "the archives of a release have their digests, and lead from an empty database to a signed delivery",
    async () => {
      await succeed([process.execPath, "scripts/release.ts", "--dry-run", "--targets", OWN]);
      const release = join(ROOT, "dist/release");
      const sums = await succeed(["sha256sum", "-c", "SHA256SUMS"], release);
      const root = emptyRoot();
      for (const name of ["reviewrelay-server", "reviewrelay"]) {
        const archive = `${name}-${VERSION}-${OWN}.tar.gz`;
        expect(sums).toContain(`${archive}: OK\n`);
        await succeed(["tar", "-xzf", join(release, archive), "-C", root.folder]);
      }
      await use.useExecutables(await install(root), COMMIT);
    },
    LIMIT_MS,
  );
});

describe.skipIf(lacks("root", "mounts", "buildah"))("the image", () => {
  test(
    "is built by its Containerfile, and leads there with its user, settings and entry point",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "image-"));
      ends.push(() => rmSync(folder, { recursive: true }));
      const buildah = async (...args: readonly string[]) => {
        const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")];
        const command = ["buildah", ...storage, "--storage-driver", "vfs", ...args];
        return (await succeed(command, ROOT, { BUILDAH_ISOLATION: "chroot" })).trim();
      };
      /** Makes an image of this machine's files, because a test has no registry. */
      const image = async (
        name: string,
        root: EmptyRoot,
        env: Readonly<Record<string, string>>,
      ) => {
        const container = await buildah("from", "scratch");
        await buildah("copy", container, root.folder, "/");
        const options = Object.entries(env).map(([key, value]) => `--env=${key}=${value}`);
        if (options.length > 0) await buildah("config", ...options, container);
        await buildah("commit", container, `localhost/${name}`);
      };
      await image("base", emptyRoot(), {});
      await image("bun", await withBun(), BUN_ENV);
      const names = ["BUN_IMAGE=localhost/bun", "BASE_IMAGE=localhost/base", `COMMIT=${COMMIT}`];
      const options = names.flatMap((one) => ["--build-arg", one]);
      await buildah("build", "-f", "deploy/Containerfile", ...options, "-t", "reviewrelay", ".");

      const container = await buildah("from", "localhost/reviewrelay");
      const { OCIv1 } = JSON.parse(await buildah("inspect", container));
      const { User, Entrypoint, Cmd, Env } = OCIv1.config;
      expect({ User, Entrypoint, Cmd }).toEqual({
        User: "10001:10001",
        Entrypoint: [SERVER],
        Cmd: ["api"],
      });
      const root = new EmptyRoot(await buildah("mount", container));
      const installed = await install(root);
      const own = Object.fromEntries(Env.map((one: string) => one.split("=")));
      await use.useExecutables({ ...installed, env: { ...own, ...installed.env } }, COMMIT);
    },
    LIMIT_MS,
  );
});

/** Finds no registry and no proxy of this machine, but its certificates. */
const BUN_ENV = {
  PATH: "/usr/bin",
  NODE_EXTRA_CA_CERTS: "/etc/ssl/certs/ca-certificates.crt",
};
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

function emptyRoot(): EmptyRoot {
  const root = new EmptyRoot();
  ends.push(() => root.remove());
  return root;
}

async function withBuilt(): Promise<EmptyRoot> {
  const root = emptyRoot();
  const server = await builtExecutable();
  root.copy(server, SERVER);
  root.copy(join(dirname(server), "reviewrelay"), COMMAND);
  return root;
}

/** Makes a root that has Bun, the shell and `sed`, as the image of Bun has. */
async function withBun(): Promise<EmptyRoot> {
  const root = emptyRoot();
  root.copy(process.execPath, "/usr/bin/bun");
  symlinkSync("usr/bin", join(root.folder, "bin"));
  for (const program of ["/usr/bin/sh", "/usr/bin/sed"]) {
    root.copy(program);
    for (const [, name = "", path = ""] of (await succeed(["ldd", program])).matchAll(LINKED))
      root.copy(path, `/usr/lib/${name}`);
  }
  return root;
}

/** A library, as `ldd` lists it. */
const LINKED = /^\s+(\S+) => (\S+)/gm;

/** Returns the executables of a root with settings, secrets in files, and an empty database. */
async function install(root: EmptyRoot): Promise<use.Installed> {
  const name = `executable_${crypto.randomUUID().slice(0, 8)}`;
  const server = new URL(process.env["TEST_DATABASE_URL"] ?? "postgres://unset");
  const administer = async (statement: string) => {
    const db = connect(server.href, { max: 1, name: "test" });
    await db.sql.unsafe(statement);
    await db.close();
  };
  await administer(`create database "${name}"`);
  ends.push(() => administer(`drop database "${name}" with (force)`));
  root.write({
    "/secrets/database_url": Object.assign(new URL(server), { pathname: `/${name}` }).href,
    "/secrets/master_key": randomBytes(32).toString("base64"),
  });
  const hasCommand = existsSync(join(root.folder, COMMAND));
  return {
    server: root.program(SERVER),
    command: hasCommand ? root.program(COMMAND) : undefined,
    folder: "/",
    env: {
      ...(await use.settings()),
      DATABASE_URL_FILE: "/secrets/database_url",
      MASTER_KEY_FILE: "/secrets/master_key",
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: `${name}:`,
    },
  };
}

/** Runs a program of this machine; returns what it wrote, or throws with it if the program failed. */
async function succeed(
  command: readonly string[],
  folder = ROOT,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const all = { ...process.env, ...env };
  const { status, out, err } = await use.run(command, [], { folder, env: all });
  if (status !== 0) throw new Error(`${command.join(" ")}:\n${out}${err}`);
  return out;
}
